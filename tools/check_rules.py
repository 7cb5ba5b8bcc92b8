#!/usr/bin/env python3
"""check_rules.py - the house rules that a machine can check, apart from includes and formatting.

usage: tools/check_rules.py [ROOT]

Each rule is a function (root) -> violations; RULES names them. One line a violation, exit code 1 if there is any.
"""

import argparse
import glob
import os
import re
import sys

from check_includes import TABLE

FOLDERS = list(TABLE) + ["tests", "tools", "bench", "examples", "docs", ".ci"]
CODE = (".c", ".h", ".cu", ".cuh")
TEXT = CODE + (".py", ".sh", ".md", ".ini", ".build", ".txt", "")

MAX_LINES = 800
LONG_LINES = 400

# (file or folder, function): why it may call the allocator itself
ALLOCATOR_ALLOWED = {
    "trainer/export/trawl_policy.h": {"malloc", "calloc", "free"},  # part of other programs
    "web/wasm/game.c": {"malloc", "calloc"},  # its own: in a page there is no base/mem.c
    "web/wasm/libc/wasm_libc.h": {"malloc", "calloc", "free"},
    "base/mem.c": {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign"},  # it is the one
}
ALLOCATOR = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|getline|"
                       r"aligned_alloc|posix_memalign)\s*\(")
# Tests stand in for users of a library and free what it hands out; the rule is for the program.
PROGRAM = list(TABLE)

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.-])/(work|root|home|mnt|Users)/\w")
LOCALE = re.compile(r"\b(setlocale|newlocale|uselocale)\s*\(")
LOCALE_ALLOWED = ["base/text/num.c"]  # keeps the caller's locale out of one conversion
PTX = re.compile(r"\basm\b")
PTX_FILE = "kernels/cuda/ptx.cuh"
THIS_FILE = "tools/check_rules.py"


def files(root, endings=TEXT, folders=None):
    """Paths from the root, of the project's folders and (folders not given) of the root itself."""
    if folders is None:
        for name in sorted(os.listdir(root)):
            if name != ".git" and os.path.isfile(os.path.join(root, name)) and os.path.splitext(name)[1] in endings:
                yield name
    for folder in folders or FOLDERS:
        for at, inner, names in os.walk(os.path.join(root, folder)):
            inner[:] = sorted(d for d in inner if d != "__pycache__")
            for name in sorted(names):
                if os.path.splitext(name)[1] in endings:
                    yield os.path.relpath(os.path.join(at, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as text:
        return text.read()


def without_comments(code):
    """C code with comments and string contents blanked, line numbers kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), code)


def grep(root, paths, pattern, why, strip=False):
    found = []
    for path in paths:
        text = read(root, path)
        for number, line in enumerate((without_comments(text) if strip else text).splitlines(), 1):
            match = pattern.search(line)
            if match:
                found.append(f"{path}:{number}: {match.group(0).strip()}: {why}")
    return found


def rule_length(root):
    found = []
    for path in files(root, CODE + (".py",)):
        n_lines = read(root, path).count("\n")
        if n_lines > MAX_LINES:
            found.append(f"{path}: {n_lines} lines, {MAX_LINES} is the limit: split it")
    return found


def long_files(root):
    """Not violations: what is on its way to one."""
    counts = ((read(root, path).count("\n"), path) for path in files(root, CODE, PROGRAM))
    return [f"{path}: {n} lines, aim at {LONG_LINES}" for n, path in counts if n > LONG_LINES]


def rule_locale(root):
    return grep(root, (p for p in files(root, CODE, PROGRAM) if p not in LOCALE_ALLOWED), LOCALE, "numbers would change with the user's locale", strip=True)


def rule_ptx(root):
    paths = [path for path in files(root, CODE, ["kernels"]) if path != PTX_FILE]
    return grep(root, paths, PTX, f"inline PTX belongs into {PTX_FILE}", strip=True)


def rule_allocator(root):
    found = []
    for path in files(root, CODE, PROGRAM):
        allowed = ALLOCATOR_ALLOWED.get(path, set())
        for number, line in enumerate(without_comments(read(root, path)).splitlines(), 1):
            for match in ALLOCATOR.finditer(line):
                if match.group(1) not in allowed:
                    found.append(f"{path}:{number}: {match.group(1)}: only base/mem.c allocates; use mem_*")
    return found


def rule_unfinished(root):
    paths = (p for p in files(root) if p != THIS_FILE and not p.startswith("tests/style/"))
    return grep(root, paths, UNFINISHED, "finish it or file an issue")


def rule_paths(root):
    paths = (p for p in files(root) if p != THIS_FILE and not p.startswith("tests/style/"))
    return grep(root, paths, MACHINE_PATH, "a path of one machine")


def rule_text(root):
    """Tabs at the start of C lines, blanks at line ends, no newline at the end of a file."""
    found = []
    for path in files(root):
        text = read(root, path)
        if text and not text.endswith("\n"):
            found.append(f"{path}: no newline at its end")
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip():
                found.append(f"{path}:{number}: blanks at the end of the line")
            if path.endswith(CODE) and line.startswith("\t"):
                found.append(f"{path}:{number}: indented with a tab")
    return found


def heading_anchor(heading):
    """The anchor that code hosts make of a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(markdown):
    return {heading_anchor(m.group(1)) for m in re.finditer(r"^#+\s+(.*)$", markdown, re.MULTILINE)}


def rule_links(root):
    """Links of Markdown files to other files and headings of the tree."""
    found = []
    for path in files(root, (".md",)):
        text = re.sub(r"```.*?```", lambda m: "\n" * m.group(0).count("\n"), read(root, path), flags=re.DOTALL)
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                if not os.path.exists(os.path.join(root, file)):
                    found.append(f"{path}:{number}: {target}: no such file")
                elif anchor and file.endswith(".md") and anchor not in anchors(read(root, file)):
                    found.append(f"{path}:{number}: {target}: no such heading")
    return found


NAMED_FILE = re.compile(r"(?<![\w./~<-])(?:" + "|".join(re.escape(f) for f in FOLDERS)
                        + r")/(?:[\w.*-]+/)*[\w.*-]+\.(?:c|h|cu|cuh|py|sh|md|ini|json|txt|service|lua)\b")
NAMED_NOT_KEPT = {"envs/games/apples.h"}  # the game that docs/envs.md writes down


def rule_named_files(root):
    """Files that Markdown and code name by their path from the root; NAME (envs/NAME.h) stands for any."""
    found = []
    for path in files(root, CODE + (".py", ".md", ".ini", ".build", "")):
        if path.startswith("tests/style/") or path == "CHANGELOG.md":  # plants files; names old files
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            for name in NAMED_FILE.findall(line):
                pattern = re.sub("NAME|MODULE", "*", name)
                if name not in NAMED_NOT_KEPT and not glob.glob(os.path.join(root, pattern)):
                    found.append(f"{path}:{number}: {name}: no such file")
    return found


def rule_programs(root):
    """Scripts start by their name, as pages write them: a first line #! and the permission to execute go together."""
    def starts(path):
        with open(os.path.join(root, path), "rb") as script:
            return script.read(2) == b"#!"

    return [f"{path}: {'not executable, but has' if starts(path) else 'executable, but lacks'} a first line #!"
            for path in files(root) if starts(path) != os.access(os.path.join(root, path), os.X_OK)]


RULES = {
    "no file over 800 lines": rule_length,
    "no locale": rule_locale,
    "only base/mem.c allocates": rule_allocator,
    "inline PTX is in one file": rule_ptx,
    "nothing marked unfinished": rule_unfinished,
    "no paths of one machine": rule_paths,
    "clean text": rule_text,
    "markdown links resolve": rule_links,
    "files that are named exist": rule_named_files,
    "scripts can be started": rule_programs,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    root = parser.parse_args().root
    found = [text for rule in RULES.values() for text in rule(root)]
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
