"""measure.py - what the scripts of bench/ share: where a number was measured, and running trawl."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))

import result_table  # noqa: E402: tools/ is on the path now


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
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values}


def parse_cases(parser, cases):
    """The command line: words from `cases` (all where none is given) and --seeds."""
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    arguments = parser.parse_intermixed_args()
    unknown = [case for case in arguments.cases if case not in cases]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(cases)}")
    if arguments.seeds < 1:
        parser.error("--seeds must be 1 or more")
    arguments.cases = arguments.cases or list(cases)
    return arguments
