"""measure.py - what the scripts of bench/ share: where a number was measured, and running trawl."""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = str(pathlib.Path(__file__).resolve().parents[1])
sys.path.insert(0, os.path.join(ROOT, "tools"))

import result_table  # noqa: E402: tools/ is on the path now


def parser(doc, program=True):
    """doc: the script's, as its help; program: its first argument is trawl."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if program:
        made.add_argument("trawl", type=os.path.abspath)
    return made


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def place(trawl):
    """Machine, commit and program of a measurement, in one line."""
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    version = subprocess.run([trawl, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return (f"{cpu_model()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.2f} before; {version}, commit {commit}; "
            f"{time.strftime('%Y-%m-%d', time.gmtime())}; {' '.join(os.path.basename(word) if os.path.isabs(word) else word for word in sys.argv)}")


def run_json(command):
    """Runs a command and returns the JSON object that it prints; its messages stay on stderr."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return json.loads(done.stdout)


def sweep(trawl, config, store, name, *words):
    """Runs a sweep to its end and returns its trials."""
    subprocess.run([trawl, "sweep", config, "--store", store, "--name", name, "-q", *words], check=True, stdout=subprocess.DEVNULL)
    return run_json([trawl, "show", name, "--store", store, "--json"])["trials"]


def export(trawl, store, name, rule, ini):
    subprocess.run([trawl, "export", name, "--store", store, "--pick", rule, "-o", ini], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def serve(trawl, store, *words):
    """(process, port) of a `trawl serve` that answers without a token; its caller ends it."""
    process = subprocess.Popen([trawl, "serve", "--store", store, "--port", "0", "--no-token", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, int(re.search(r":(\d+)/", process.stdout.readline()).group(1))


def setting_words(setting):
    """CONFIG[,section.key=value]... as words of a command line."""
    path, *pairs = setting.split(",")
    return [path] + [word for pair in pairs for word in ("--" + pair.partition("=")[0], pair.partition("=")[2])]


def resolved(trawl, words):
    """The config of a training as the program reads it, an ini text."""
    return subprocess.run([trawl, "train", *words, "--print-config"], stdout=subprocess.PIPE, text=True, check=True).stdout


def children(pid):
    """Processes that a process has started and that live."""
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def cpu_s(pid, below=False):
    """Processor seconds of a process, and of all that it has started: beside other work they say more than the clock."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        started = children(pid) if below else []
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(cpu_s(child, True) for child in started)


def parse_cases(made, cases):
    """The command line: words from `cases` (all where none is given) and --seeds."""
    made.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    arguments = made.parse_intermixed_args()
    unknown = [case for case in arguments.cases if case not in cases]
    if unknown:
        made.error(f"no case {unknown[0]}; there are {', '.join(cases)}")
    if arguments.seeds < 1:
        made.error("--seeds must be 1 or more")
    arguments.cases = arguments.cases or list(cases)
    return arguments
