#!/usr/bin/env python3
"""embed.py - writes the C file that holds the assets of the pages, each as gzip.

usage: embed.py OUT.c OUT.d ASSETS VEGA-FOLDER

Every file below the folder ASSETS is held, by its path from there; OUT.d lists all of them and the folders for Ninja.

VEGA-FOLDER is where the distribution keeps Vega (libjs-vega, /usr/share/javascript/vega). It ships one file for each of
Vega's modules and no bundle, so the bundle vega.js is made here: the modules in their order, each called as the CommonJS
module it can be, and all that they export in `window.vega`, as Vega's own index does.
"""

import gzip
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".json": "application/json",
         ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8"}

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


def c_bytes(data):
    rows = []
    for at in range(0, len(data), 24):
        rows.append("    " + ",".join(str(byte) for byte in data[at:at + 24]) + ",")
    return "\n".join(rows)


def main():
    out, depfile, top, folder = sys.argv[1:5]
    assets, read = [], [top]
    for at, folders, files in os.walk(top):
        folders.sort()
        read += [os.path.join(at, name) for name in folders]
        for path in sorted(os.path.join(at, name) for name in files if not name.startswith(".")):
            read.append(path)
            with open(path, "rb") as file:
                assets.append((os.path.relpath(path, top), file.read()))
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
