#!/usr/bin/env python3
"""embed_text.py - writes a C file that holds texts as one, in the array that a header declares.   usage: embed_text.py TEXT... OUT.c HEADER NAME"""

import pathlib
import sys

if "--help" in sys.argv:
    sys.exit(print(__doc__))
*sources, target, header, name = sys.argv[1:]
with open(target, "w", encoding="utf-8") as out:
    data = b"".join(pathlib.Path(source).read_bytes() for source in sources) + b"\0"
    rows = ["    " + ",".join(map(str, data[at:at + 30])) + "," for at in range(0, len(data), 30)]
    out.write(f'/* made by tools/embed_text.py */\n#include "{header}"\n\nconst char {name}[] = {{\n' + "\n".join(rows) + "\n};\n")
