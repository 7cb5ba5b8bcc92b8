#!/usr/bin/env python3
"""check_includes.py - fails when an include breaks the folder table of ARCHITECTURE.md.

usage: tools/check_includes.py [ROOT]

Rules: project headers are included by their path from the root; a folder includes only the folders that TABLE allows
and of those only the public headers; libraries that belong to one folder are included by that folder alone. Tests and
bench programs may include anything of the project. One line a violation, exit code 1 if there is any.
"""

import os
import re
import sys

# folder: folders it may include besides itself
TABLE = {
    "base": [],
    "envs": ["base"],
    "gp": ["base"],
    "store": ["base"],
    "kernels": ["base", "envs"],
    "trainer": ["base", "envs", "kernels"],
    "web": ["base", "store", "gp"],
    "sweep": ["base", "envs", "kernels", "gp", "store", "trainer", "web"],
}
FREE = ["tests", "bench"]

# public headers of a folder; base is public altogether
PUBLIC = {
    "envs": ["envs/envs.h", "envs/env.h", "envs/draw.h"],
    "kernels": ["kernels/kernels.h"],
    "trainer": ["trainer/trainer.h"],
    "gp": ["gp/gp.h"],
    "store": ["store/store.h"],
    "web": ["web/web.h", "web/track.h"],
    "sweep": [],
}
# (including folder, pattern of the header): exceptions with a decision behind them
ALSO = [
    ("kernels/cuda", r"envs/[a-z0-9_]+\.h$"),  # the games become kernels there: docs/decisions/0001
]

# library header pattern: folders, or files, that may include it
LIBRARIES = [
    (r"sqlite3\.h$", ["store"]),
    (r"curl/", ["web"]),
    (r"openssl/", ["web"]),
    (r"microhttpd\.h$", ["web"]),
    (r"gsl/", ["gp", "sweep"]),
    (r"(cblas|lapacke?|openblas.*)\.h$", ["gp", "kernels", "trainer"]),
    (r"(cuda.*|cublas.*|cudnn.*|nccl)\.h$", ["kernels/cuda"]),
    (r"ini\.h$", ["base"]),
    (r"locale\.h$", ["base"]),  # num.c sets the thread's locale to "C" around a conversion
]

# asks every library for its version
LIBRARIES_FREE = ["sweep/cmd_doctor.c"]

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".c", ".h", ".cu", ".cuh", ".inc")


def sources(root):
    for folder in list(TABLE) + FREE:
        for at, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SOURCES):
                    yield os.path.relpath(os.path.join(at, name), root)


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def check_project_include(root, path, header):
    """The reason why path must not include header, or None."""
    folder, to = path.split("/")[0], header.split("/")[0]
    if folder in FREE and os.path.exists(os.path.join(root, os.path.dirname(path), header)):
        return None  # a test's own header beside it
    if not os.path.exists(os.path.join(root, header)):
        return "no such file from the root; headers are included by their path from the root"
    if folder in FREE or to == folder:
        return None
    if any(inside(path, who) and re.match(what, header) for who, what in ALSO):
        return None
    if to not in TABLE.get(folder, []):
        return f"{folder}/ may include {', '.join(TABLE[folder]) or 'nothing'}"
    if to in PUBLIC and header not in PUBLIC[to]:
        return f"not public; {to}/ shows {', '.join(PUBLIC[to])}"
    return None


def check_library_include(path, header):
    if path.split("/")[0] in FREE or path in LIBRARIES_FREE:
        return None
    for what, folders in LIBRARIES:
        if re.match(what, header) and not any(inside(path, f) for f in folders):
            return f"<{header}> is for {', '.join(f + '/' for f in folders)} only"
    return None


def check(root):
    """All violations as texts, and the number of files looked at."""
    found, n_files = [], 0
    for path in sources(root):
        n_files += 1
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as text:
            for number, line in enumerate(text, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                own, library = match.groups()
                why = check_project_include(root, path, own) if own else check_library_include(path, library)
                if why:
                    found.append(f"{path}:{number}: {own or library}: {why}")
    return found, n_files


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    found, n_files = check(root)
    for text in found:
        print(text)
    print(f"{n_files} files, {len(found)} violations", file=sys.stderr)
    return 1 if found or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
