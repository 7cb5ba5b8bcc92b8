#!/usr/bin/env python3
"""many_nodes.py - what a controller with many nodes costs: nodes that sleep (sleeping_nodes.c), straight in a store.

usage: bench/workers/many_nodes.py BUILD [--nodes N ...] [--trial-s S] [--seconds S] [--method M] [--postgres]
One row for each N: share of one core that the controller takes over the last two thirds of the time, by /proc.
"""
import argparse
import pathlib
import signal
import subprocess
import tempfile
import time

from many_workers import CONFIG, Store, cpu_s


def measure(args, n):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-many-"))
    (folder / "s.ini").write_text(CONFIG % args.method)
    store = Store(folder, args.postgres)
    with open(folder / "log", "w") as log:
        sweep = subprocess.Popen([args.build + "/sweep/trawl", "sweep", str(folder / "s.ini"), "--store", store.address, "--name", "n%d" % n, "--trials",
                                  "1000000", "-q", "--devices", "none"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    time.sleep(3)
    nodes = [subprocess.Popen([args.build + "/bench/sleeping_nodes", store.address, str(n // args.processes), str(args.trial_s), str(args.seconds)],
                              stdout=subprocess.PIPE, text=True) for _ in range(args.processes)]
    time.sleep(args.seconds / 3)
    before, from_s = cpu_s(sweep.pid), time.monotonic()
    time.sleep(args.seconds * 2 / 3 - 1)
    after, took = cpu_s(sweep.pid), time.monotonic() - from_s
    share = {name: 100 * (after[name] - before[name]) / took for name in after}
    others = ", ".join("%s %.1f %%" % item for item in sorted(share.items(), key=lambda item: -item[1])[:3] if item[1] >= 0.05)
    words = [one.communicate()[0].split() for one in nodes]  # results N, R a second, B % of the slots busy
    rate, busy = sum(float(w[2]) for w in words), sum(float(w[5]) for w in words) / len(words)
    print("| %d | %.1f | %.1f %% | %.1f %% (%s) |" % (n, rate, busy, sum(share.values()), others), flush=True)
    sweep.send_signal(signal.SIGINT)
    sweep.wait(120)
    store.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--nodes", type=int, nargs="+", default=[8, 100, 500])
    parser.add_argument("--processes", type=int, default=10, help="that share the nodes, each with one connection")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--trial-s", type=float, default=40)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--method", default="sobol")
    args = parser.parse_args()
    print("| nodes | results/s | slots with a trial | controller, of one core (by thread) |\n|---|---|---|---|")
    for n in args.nodes:
        measure(args, n)


if __name__ == "__main__":
    main()
