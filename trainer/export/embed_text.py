#!/usr/bin/env python3
"""embed_text.py - writes the C file that holds the text of trawl_policy.h.   usage: embed_text.py TEXT OUT.c"""

import sys

with open(sys.argv[1], "rb") as text, open(sys.argv[2], "w", encoding="utf-8") as out:
    data = text.read() + b"\0"
    rows = ["    " + ",".join(map(str, data[at:at + 30])) + "," for at in range(0, len(data), 30)]
    out.write('/* made by trainer/export/embed_text.py */\n#include "trainer/export/export_priv.h"\n\n'
              "const char trawl_policy_h[] = {\n" + "\n".join(rows) + "\n};\n")
