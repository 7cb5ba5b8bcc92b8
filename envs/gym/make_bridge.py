#!/usr/bin/env python3
"""make_bridge.py - writes the C file that holds bridge.py: make_bridge.py BRIDGE.py OUT.c"""

import sys


def main():
    with open(sys.argv[1], "rb") as file:
        text = file.read() + b"\0"
    rows = ["    " + ",".join(map(str, text[at:at + 30])) + "," for at in range(0, len(text), 30)]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write('/* made by envs/gym/make_bridge.py */\n#include "envs/gym/gym_helper.h"\n\n'
                   "const char gym_bridge[] = {\n%s\n};\n" % "\n".join(rows))


if __name__ == "__main__":
    main()
