#!/usr/bin/env python3
"""embed.py - writes the C file that holds the assets of the pages, each as gzip.

usage: embed.py OUT.c OUT.d ASSETS VEGA-FOLDER [GAME.wasm ...]

Every file below the folder ASSETS is held, by its path from there; OUT.d lists all of them and the folders for Ninja. Games are
held as games/GAME.wasm. For `trawl report --site`, which must work from disk, where browsers load no modules: all of them as one
script, pages.js, and site.html, the index that loads it.

VEGA-FOLDER is where the distribution keeps Vega (libjs-vega, /usr/share/javascript/vega). It ships one file for each of
Vega's modules and no bundle, so the bundle vega.js is made here: the modules in their order, each called as the CommonJS
module it can be, and all that they export in `window.vega`, as Vega's own index does.
"""

import gzip
import os
import posixpath
import re
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".json": "application/json",
         ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
         ".wasm": "application/wasm"}

# module: file, in an order in which each needs only those before it
VEGA = ["util", "time", "format", "loader", "dataflow", "statistics", "canvas", "scale", "scenegraph", "encode", "expression",
        "selection", "functions", "event-selector", "parser", "runtime", "view", "transforms", "view-transforms", "label",
        "regression", "interpreter"]
TRANSFORMS = ["transforms", "view-transforms", "encode", "label", "regression"]

BUNDLE_HEAD = """/* Vega and its modules, as the distribution ships them (BSD-3-Clause); see its libjs-vega package. */
(function () {
"use strict";
var modules = Object.create(null);
function need(name) {
  if (!modules[name]) throw new Error("vega.js lacks the module " + name);
  return modules[name];
}
function add(name, run) {
  var module = { exports: {} };
  run.call(globalThis, module.exports, need, module, undefined);
  modules[name] = module.exports;
}
"""
BUNDLE_TAIL = """
var vega = {}, transforms = need("vega-dataflow").transforms || {};
Object.keys(modules).forEach(function (name) {
  var isTransforms = %s.indexOf(name) >= 0;
  Object.keys(modules[name]).forEach(function (key) {
    if (isTransforms) transforms[key] = modules[name][key];
    else vega[key] = modules[name][key];
  });
});
vega.transforms = transforms;
globalThis.vega = vega;
})();
"""


def vega_bundle(folder):
    parts = [BUNDLE_HEAD]
    for name in VEGA:
        path = os.path.join(folder, f"vega-{name}.min.js")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL")]
        module = "vega-selections" if name == "selection" else f"vega-{name}"
        parts.append(f'add("{module}", function (exports, require, module, define) {{\n' + "\n".join(lines) + "\n});\n")
    names = ["vega-" + name for name in TRANSFORMS]
    parts.append(BUNDLE_TAIL % str(names).replace("'", '"'))
    return "".join(parts)


PAGES_HEAD = """/* The modules of web/assets as one script, made by web/embed.py. */
(function () {
"use strict";
const modules = {}, made = {};
function need(name) {
  if (!made[name]) modules[name](made[name] = {});
  return made[name];
}
"""


def as_function(name, text):
    """A module as a function that fills `exports`; its imports become needs. The forms of import and export that web/assets uses."""
    folder = posixpath.dirname(name)

    def path(match):
        return posixpath.normpath(posixpath.join(folder, match))

    exports = re.findall(r"^export (?:async )?(?:function|class|const|let) (\w+)", text, re.M)
    text = re.sub(r"^import \* as (\w+) from '([^']+)';", lambda m: f'const {m[1]} = need("{path(m[2])}");', text, flags=re.M)
    text = re.sub(r"^import \{([^}]+)\} from '([^']+)';",
                  lambda m: f'const {{{m[1].replace(" as ", ": ")}}} = need("{path(m[2])}");', text, flags=re.M)
    text = re.sub(r"\bimport\('([^']+)'\)", lambda m: f'Promise.resolve().then(() => need("{path(m[1])}"))', text)
    text = re.sub(r"^export ", "", text, flags=re.M)
    if re.search(r"^(import|export)\b", text, re.M):
        sys.exit(f"embed.py: {name} has an import or export of another form")
    getters = "".join(f"Object.defineProperty(exports, '{e}', {{get: () => {e}}});\n" for e in exports)
    return f'modules["{name}"] = function (exports) {{\n{getters}{text}\n}};\n'


def pages_bundle(assets):
    modules = [(name, data.decode()) for name, data in assets if name.endswith(".js") and name != "stream_worker.js"]
    return PAGES_HEAD + "".join(as_function(name, text) for name, text in modules) + 'need("app.js");\n})();\n'


def site_index(index):
    """index.html with addresses that need no server."""
    text = index.decode().replace('"/assets/', '"assets/').replace('href="/"', 'href="#/"')
    old = '<script type="module" src="assets/app.js"></script>'
    if old not in text:
        sys.exit("embed.py: index.html has no script app.js")
    return text.replace(old, '<script defer src="data/site.js"></script>\n<script defer src="assets/pages.js"></script>')


def c_bytes(data):
    rows = []
    for at in range(0, len(data), 24):
        rows.append("    " + ",".join(str(byte) for byte in data[at:at + 24]) + ",")
    return "\n".join(rows)


def main():
    out, depfile, top, folder, *games = sys.argv[1:]
    assets, read = [], [top]
    for at, folders, files in os.walk(top):
        folders.sort()
        read += [os.path.join(at, name) for name in folders]
        for path in sorted(os.path.join(at, name) for name in files if not name.startswith(".")):
            read.append(path)
            with open(path, "rb") as file:
                assets.append((os.path.relpath(path, top), file.read()))
    assets += [("pages.js", pages_bundle(assets).encode()), ("site.html", site_index(dict(assets)["index.html"]).encode())]
    for path in games:
        with open(path, "rb") as file:
            assets.append(("games/" + os.path.basename(path), file.read()))
    with open(depfile, "w", encoding="utf-8") as deps:
        deps.write(out + ": " + " ".join(path.replace(" ", "\\ ") for path in read) + "\n")
    assets.append(("vega.js", vega_bundle(folder).encode()))
    with open(out, "w", encoding="utf-8") as c:
        c.write('/* made by web/embed.py */\n#include "web/serve/routes.h"\n\n')
        rows = []
        for i, (name, data) in enumerate(assets):
            packed = gzip.compress(data, 9, mtime=0)
            kind = TYPES.get(os.path.splitext(name)[1], "application/octet-stream")
            c.write(f"static const unsigned char asset_{i}[] = {{\n{c_bytes(packed)}\n}};\n")
            rows.append(f'    {{"{name}", "{kind}", asset_{i}, sizeof asset_{i}, {len(data)}}},')
        c.write("\nconst struct asset serve_assets[] = {\n" + "\n".join(rows) + "\n};\n")
        c.write("const size_t serve_n_assets = sizeof serve_assets / sizeof serve_assets[0];\n")


if __name__ == "__main__":
    main()
