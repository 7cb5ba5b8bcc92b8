#!/usr/bin/env python3
"""check_includes.py - fails when the code leaves the structure of ARCHITECTURE.md.

usage: tools/check_includes.py [ROOT]          one line a violation; exit code 1 if there is any
       tools/check_includes.py --draw [ROOT]   prints the includes between folders, lowest floor first

Rules: (1) project headers are included by their path from the root; a folder includes only the folders that TABLE allows,
and of those with a public face only its headers; (2) libraries that belong to one folder are included by that folder alone;
(3) no two source files have the same name; (4) no folder holds more than FOLDER_MAX files, a .c and its .h counted as
one; (5) files include each other in no circle, and folders in none but those in CIRCLES. Tests and bench programs may
include anything of the project.
"""

import argparse
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
    "study": ["base", "envs", "kernels", "trainer", "gp", "store"],
    "web": ["base", "envs", "kernels", "trainer", "gp", "store", "study"],
    "sweep": ["base", "envs", "kernels", "trainer", "gp", "store", "study", "web"],
}
FREE = ["tests", "bench"]
FOLDER_MAX = 20

# public headers of a folder; of a folder that is not here every header is
PUBLIC = {
    "envs": ["envs/envs.h", "envs/env.h", "envs/draw.h", "envs/plugin/env_config.h",
             "envs/plugin/library.h", "envs/plugin/describe.h", "envs/plugin/child.h", "envs/plugin/crash.h", "envs/plugin/headers.h",
             "envs/gym/gym.h", "envs/gym/gym_settings.h"],
    "kernels": ["kernels/kernels.h"],
    "trainer": ["trainer/trainer.h"],
    "gp": ["gp/gp.h"],
    "store": ["store/store.h"],
}
# (including folder, pattern of the header): exceptions with a decision record
ALSO = [
    ("kernels/cpu", r"envs/env_math\.h$"),  # a cosine of our own: a sample must not depend on the libm
    ("kernels/cuda", r"envs/[a-z0-9_/]+\.h$"),  # the games become kernels there: docs/decisions/0001
    ("web/wasm", r"(envs/[a-z0-9_/]+|trainer/export/trawl_policy)\.h$"),  # a game and a policy become WebAssembly there
]
# pairs of folders that include each other, and why
CIRCLES = {
    ("base", "base/os"): "base.h brings the clock, as what nearly every file needs",
    ("base", "base/text"): "base.h brings growing strings, numbers and words, as what nearly every file needs",
    ("gp", "gp/model"): "the public face is one header",
    ("store", "store/postgres"): "a connection is part of its store, which the store's files use by one header",
    ("sweep/controller", "sweep/controller/trial"): "one event loop and its objects: a study has trials in flight",
    ("sweep/control", "sweep/show"): "what is shown comes over the socket when another process runs the study",
}
# circles of files, and why
FILE_CIRCLES = [
    ["sweep/controller/device_fits", "sweep/controller/leases", "sweep/controller/nodes", "sweep/controller/sched_study",
     "sweep/controller/scheduler", "sweep/controller/stop_rules", "sweep/controller/store_watch",
     "sweep/controller/trial/checkpoints", "sweep/controller/trial/course", "sweep/controller/trial/flight"],  # one event loop and its objects
    ["sweep/supervise/slot", "sweep/supervise/worker_process"],  # a worker has slots
    ["sweep/supervise/supervise", "sweep/supervise/workers"],  # all workers, and what decides their health
    ["sweep/launch/devices", "sweep/launch/remote_devices"],  # a list, and the entries of it that are elsewhere
    ["sweep/worker/lane", "sweep/worker/lane_files", "sweep/worker/lane_messages", "sweep/worker/lane_pool", "sweep/worker/lane_program"],  # a worker and its lanes
    ["web/serve/events", "web/serve/models", "web/serve/playing", "web/serve/routes", "web/serve/serve",
     "web/serve/answer_cache"],  # the server and what its threads share
    ["study/space/search", "study/space/search_depends", "study/space/search_expr", "study/space/trial_check"],  # a space, and what decides whether a point is in it
    ["store/db", "store/postgres/pg", "store/store"],  # a connection is part of its store
    ["kernels/kern", "kernels/kernels", "kernels/ranks"],  # one header for users, in three files
]

# library header pattern: folders, or files, that may include it
LIBRARIES = [
    (r"sqlite3\.h$", ["store"]),
    (r"libpq-fe\.h$", ["store/postgres"]),
    (r"curl/", ["web"]),
    (r"openssl/", ["web"]),
    (r"microhttpd\.h$", ["web"]),
    (r"gsl/", ["gp", "study/findings", "sweep"]),
    (r"(cblas|lapacke?|openblas.*)\.h$", ["gp", "kernels", "trainer"]),
    (r"(cuda.*|cublas.*|cudnn.*|nccl)\.h$", ["kernels/cuda", "envs/env.h"]),  # a game writes bf16 on a GPU
    (r"cairo\.h$", ["sweep/cmd/policy", "web/report"]),
    (r"gif_lib\.h$", ["web/serve"]),
    (r"ini\.h$", ["base"]),
    (r"locale\.h$", ["base"]),  # num.c sets the thread's locale to "C" around a conversion
]
LIBRARIES_FREE = ["sweep/cmd/cmd_doctor.c"]  # asks every library for its version

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".c", ".h", ".cu", ".cuh", ".inc")


def sources(root, folders):
    for folder in folders:
        for at, below, files in os.walk(os.path.join(root, folder)):
            below.sort()
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
    if header.startswith("generated/"):
        return None  # made by the build
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


def check_includes(root):
    """Violations of rules 1 and 2, and who includes what: {file: [project header]}."""
    found, graph = [], {}
    for path in sources(root, list(TABLE) + FREE):
        graph[path] = []
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as text:
            for number, line in enumerate(text, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                own, library = match.groups()
                why = check_project_include(root, path, own) if own else check_library_include(path, library)
                if why:
                    found.append(f"{path}:{number}: {own or library}: {why}")
                elif own:
                    graph[path].append(own)
    return found, graph


def check_names(graph):
    """Rules 3 and 4."""
    found, by_name, by_folder = [], {}, {}
    for path in graph:
        if path.split("/")[0] == "tests":
            continue
        folder, name = os.path.split(path)
        if name in by_name:
            found.append(f"{path}: {by_name[name]} has the same name")
        by_name.setdefault(name, path)
        by_folder.setdefault(folder, set()).add(os.path.splitext(name)[0])
    found += [f"{folder}/: {len(stems)} files, at most {FOLDER_MAX} are wanted; is there a folder in it?"
              for folder, stems in sorted(by_folder.items()) if len(stems) > FOLDER_MAX]
    return found


def components(graph):
    """Strongly connected components of more than one node (Tarjan)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for to in graph.get(node, ()):
            if to not in index:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in on:
                low[node] = min(low[node], index[to])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                out.append(sorted(part))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return out


def folders_of(graph):
    """{folder: {folder: number of includes}} of the product's folders."""
    out = {}
    for path, headers in graph.items():
        if path.split("/")[0] in FREE:
            continue
        at = out.setdefault(os.path.dirname(path), {})
        for header in headers:
            to = os.path.dirname(header)
            if path == "sweep/main.c":
                continue  # the program stands above all
            if to != os.path.dirname(path) and not header.startswith("generated/"):
                at[to] = at.get(to, 0) + 1
    return out


def check_circles(graph):
    """Rule 5. A .c, its .h and its _priv.h are one file here."""
    def stem(path):
        return re.sub(r"_priv$", "", os.path.splitext(path)[0])

    merged = {}
    for path, headers in graph.items():
        if path.split("/")[0] not in FREE:
            merged.setdefault(stem(path), set()).update(stem(h) for h in headers if stem(h) != stem(path))
    found = [f"circle of files: {' '.join(part)}" for part in components(merged)
             if not any(set(part) <= set(known) for known in FILE_CIRCLES)]
    between = {at: {to for to in tos if tuple(sorted((at, to))) not in CIRCLES} for at, tos in folders_of(graph).items()}
    return found + [f"circle of folders: {' '.join(part)}" for part in components(between)]


def draw(graph):
    """Folders by floor: a folder stands above all that it includes."""
    between, floors = folders_of(graph), {}

    def floor(folder, seen=()):
        if folder not in floors:
            below = [floor(to, seen + (folder,)) for to in between.get(folder, ())
                     if to not in seen and tuple(sorted((folder, to))) not in CIRCLES]
            floors[folder] = 1 + max(below, default=0)
        return floors[folder]

    for folder in sorted(between):
        floor(folder)
    for folder in sorted(floors, key=lambda f: (floors[f], f)):
        into = ", ".join(sorted(between.get(folder, ())))
        print(f"{floors[folder]:2} {folder + '/':20} {'-> ' + into if into else ''}".rstrip())


def check(root):
    """All violations as texts, and the number of files looked at."""
    found, graph = check_includes(root)
    return found + check_names(graph) + check_circles(graph), len(graph)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    parser.add_argument("--draw", action="store_true")
    args = parser.parse_args()
    root = args.root
    if args.draw:
        draw(check_includes(root)[1])
        return 0
    found, n_files = check(root)
    for text in found:
        print(text)
    print(f"{n_files} files, {len(found)} violations", file=sys.stderr)
    return 1 if found or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
