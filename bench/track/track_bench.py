#!/usr/bin/env python3
"""track_bench.py - what trackers cost: memory of a large upload, and training beside a tracker that never answers.

usage: bench/track/track_bench.py TRAWL upload [ROWS] | blackhole [PAIRS]
upload: a store with ROWS rows (1000000) in one run is sent by `trawl sync` to the fake W&B server of the tests, which runs in
this process; prints seconds and the most memory that trawl took. blackhole: the same short trainings in turn without a
tracker and with one at a port that takes connections and says nothing; prints steps per second of each and the exit times.
"""
import argparse
import json
import os
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "track"))
from fake_wandb import KEY, FakeWandb  # noqa: E402
from faults import BlackHole  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("trawl", type=os.path.abspath)
parser.add_argument("what", choices=("upload", "blackhole"))
parser.add_argument("count", type=int, nargs="?", help="rows (1000000) or pairs (4)")
args = parser.parse_args()
TRAWL = args.trawl
CONFIG = """
[env]
name = squared
n = 5
[policy]
core = mlp
num_layers = 1
hidden_size = 64
[train]
total_agents = 256
horizon = 16
minibatch_size = 2048
total_timesteps = 1M
threads = 1
device = cpu
log_interval_s = 0.05
[sweep]
method = sobol
[sweep.train.learning_rate]
min = 0.001
max = 0.03
"""


def environment(home, url):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_") and not k.lower().endswith("_proxy")}
    return {**env, "HOME": str(home), "WANDB_API_KEY": KEY, "WANDB_BASE_URL": url}


def sweep(folder, name, trials, env, *args):
    config = folder / "sweep.ini"
    config.write_text(CONFIG)
    store = folder / (name + ".db")
    before = time.monotonic()
    done = subprocess.run([TRAWL, "sweep", config, "--store", store, "--name", name, "--trials", str(trials), "--quiet",
                           "--json", *args], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return store, json.loads(done.stdout)["trials"], time.monotonic() - before, done.stderr


class Counting(FakeWandb):
    """Keeps counts instead of lines and requests: the memory that is measured is not ours."""

    def answer(self, request):
        reply = super().answer(request)
        self.requests.clear()
        return reply

    def write_lines(self, run, file, offset, content):
        if file == "wandb-history.jsonl":
            assert offset == getattr(run, "n", 0), (offset, run.n)
            run.n = offset + len(content)
            return None
        return super().write_lines(run, file, offset, content)


def upload(rows):
    with tempfile.TemporaryDirectory() as folder, Counting() as fake:
        folder = pathlib.Path(folder)
        env = environment(folder, fake.url)
        store, _, _, _ = sweep(folder, "first", 1, env, "--track", "wandb", "--track.offline", "true",
                               "--track.requests_per_minute", "100000")
        db = sqlite3.connect(store)
        study, trial, payload = db.execute(
            "SELECT study_id, trial_id, payload FROM outbox WHERE json_extract(payload, '$.type') = 'metrics' "
            "ORDER BY id DESC LIMIT 1").fetchone()
        base = json.loads(payload)
        db.executemany("INSERT INTO outbox (study_id, trial_id, payload, created_ms) VALUES (?, ?, ?, ?)",
                       ((study, trial, json.dumps({**base, "env_steps": base["env_steps"] + i + 1}), 1000 * i)
                        for i in range(rows)))
        db.commit()
        db.close()
        size = store.stat().st_size
        before = time.monotonic()
        subprocess.run([TRAWL, "sync", "--store", store], env=env, check=True)
        took = time.monotonic() - before
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        sent = max(getattr(run, "n", 0) for run in fake.runs.values())
        left = sqlite3.connect(store).execute("SELECT count(*) FROM outbox").fetchone()[0]
        print("%d rows of %d bytes (store %.0f MB): %.0f s, %.0f rows/s, most memory of trawl %.0f MB; %d lines sent, %d rows "
              "left" % (rows, len(payload), size / 1e6, took, rows / took, most / 1e3, sent, left))


def blackhole(pairs):
    with tempfile.TemporaryDirectory() as folder, BlackHole() as hole:
        folder = pathlib.Path(folder)
        rates, ends = {"without": [], "black hole": []}, []
        for i in range(pairs):
            for kind in (list(rates) if i % 2 == 0 else list(rates)[::-1]):
                args = ["--track", "wandb", "--track.flush_s", "5"] if kind == "black hole" else []
                _, trials, took, _ = sweep(folder, "%s%d" % (kind[0], i), 2, environment(folder, hole.url), *args)
                rates[kind] += [t["env_steps"] / t["cost_s"] for t in trials]
                ends.append((kind, took - sum(t["cost_s"] for t in trials)))
        for kind, values in rates.items():
            print("%-11s %8.0f steps/s (mean of %d trials, standard error %.0f), beside training %.2f s a sweep" % (
                kind, statistics.mean(values), len(values), statistics.stdev(values) / len(values) ** 0.5,
                statistics.mean(s for k, s in ends if k == kind)))


if args.what == "upload":
    upload(args.count or 1000000)
else:
    blackhole(args.count or 4)
