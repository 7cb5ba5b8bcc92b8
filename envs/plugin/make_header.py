#!/usr/bin/env python3
"""make_header.py - writes trawl_env.h, and the C file that holds the headers that `trawl env build` compiles with.

usage: make_header.py ROOT FACE LOOP TRAWL_ENV.h OUT.c OUT.d [HEADER.in ...]
       make_header.py --device ROOT HEADER NAME OUT.c OUT.d

trawl_env.h is FACE with every header of the project that it includes, each once, and below it LOOP, which is there again
at each inclusion that defines ENV_GAME. A HEADER.in is held by its name without .in, as it is but for its calls: below `@call VALUE` stand names, each of
which becomes a macro of that value, whatever its arguments. --device: OUT.c holds HEADER, with every header of the project that it includes, as the string
NAME: what a game's device code is compiled with.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
CALLS = re.compile(r"^@call (.*)\n((?:    .*\n)+)", re.MULTILINE)
# so that a game's header can be moved into the program as it stands
SHIMS = {"envs/env.h": '#include "trawl_env.h"\n', "envs/env_math.h": '#include "trawl_env.h"\n'}


def expand(root, path, seen):
    """The text of a header with those that it includes. A guard takes the place of #pragma once: trawl_env.h is included twice, and
    the text for the device after it, with some of the same headers."""
    lines, end = [], ""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for line in file:
            found = INCLUDE.match(line)
            if line.strip() == "#pragma once":
                guard = "TRAWL_TEXT_" + re.sub(r"\W", "_", path.upper())
                lines.append(f"#ifndef {guard}\n#define {guard}\n")
                end = "#endif\n"
            elif not found:
                lines.append(line)
            elif found.group(1) not in seen:
                seen.append(found.group(1))
                lines.append(expand(root, found.group(1), seen))
    return "".join(lines) + end


def calls(found):
    return "".join(f"#define {name}(...) {found.group(1)}\n" for name in found.group(2).split())


def c_bytes(text):
    data = text.encode() + b"\0"
    return "\n".join("    " + ",".join(map(str, data[at:at + 30])) + "," for at in range(0, len(data), 30))


def write_depfile(path, root, made, seen):
    with open(path, "w", encoding="utf-8") as file:
        names = " ".join(os.path.join(root, path).replace(" ", "\\ ") for path in seen)
        file.write(f"{made}: {names}\n")


def device(root, header, name, out, depfile):
    seen = [header]
    text = expand(root, header, seen)
    with open(out, "w", encoding="utf-8") as file:
        file.write(f"/* made by envs/plugin/make_header.py */\n#include \"kernels/kern_priv.h\"\n\nconst char {name}[] = {{\n{c_bytes(text)}\n}};\n")
    write_depfile(depfile, root, out, seen)


def main():
    if sys.argv[1] == "--device":
        return device(*sys.argv[2:])
    root, face, loop, header, out, depfile = sys.argv[1:7]
    seen = [face, loop]
    text = "/* trawl_env.h - a game for Trawl. Made of the program's own headers by envs/plugin/make_header.py. */\n"
    text += "#ifndef TRAWL_ENV_H\n#define TRAWL_ENV_H\n" + expand(root, face, seen) + "#endif\n\n"
    text += "#ifdef ENV_GAME\n" + expand(root, loop, seen) + "#endif\n"
    with open(header, "w", encoding="utf-8") as file:
        file.write(text)
    held = {"trawl_env.h": text, **SHIMS}
    for path in sys.argv[7:]:
        with open(path, encoding="utf-8") as file:
            held[os.path.basename(path)[:-len(".in")].replace("+", "/")] = CALLS.sub(calls, file.read())
    with open(out, "w", encoding="utf-8") as file:
        file.write('/* made by envs/plugin/make_header.py */\n#include "envs/plugin/headers.h"\n\n')
        for i, held_text in enumerate(held.values()):
            file.write(f"static const char text_{i}[] = {{\n{c_bytes(held_text)}\n}};\n")
        file.write("const struct env_header env_headers[] = {\n")
        for i, name in enumerate(held):
            file.write(f'    {{"{name}", text_{i}}},\n')
        file.write("};\nconst size_t env_n_headers = sizeof env_headers / sizeof env_headers[0];\n")
    write_depfile(depfile, root, f"{header} {out}", seen)


if __name__ == "__main__":
    main()
