#!/usr/bin/env python3
"""track_rates.py - do sweeps of many short runs stay within what servers allow? usage: bench/track/track_rates.py TRAWL [RUNS]
[--out FILE]

A sweep of RUNS (1000) runs of some 0.05 s each is sent to the tests' servers of W&B, MLflow, Trackio and a webhook while it
trains, with the budgets as they are by default. W&B's server here counts as the strictest of the real ones does: more than
200 requests in any 60 seconds are answered by 429 with Retry-After. Prints for each tracker how many requests it got, the
most in any 60 s, how many were refused, and whether every run and its last word is there in the end.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("trawl")
parser.add_argument("runs", nargs="?", type=int, default=1000)
parser.add_argument("--out", help="CSV file")
parser.add_argument("--sync-limit", type=float, default=3600, help="seconds for the rest after the sweep")
options = parser.parse_args()
TRAWL = os.path.abspath(options.trawl)
sys.argv = [sys.argv[0], TRAWL]  # the tests' helpers look at it
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "track"), str(ROOT / "bench")]
import measure  # noqa: E402
import servers  # noqa: E402
import tap  # noqa: E402
from fake_mlflow import FakeMlflow  # noqa: E402
from fake_trackio import FakeTrackio  # noqa: E402
from fake_wandb import KEY, FakeWandb  # noqa: E402
from fake_webhook import FakeWebhook  # noqa: E402
from faults import Reply  # noqa: E402

WINDOW_S = 60
LIMITS = {"wandb": 200}  # requests in a window; the others' servers name none


def limited(fake, limit):
    """Times of what came in; what is over the limit is refused."""
    answer, times, refused = fake.answer, [], []

    def count(request):
        now = time.monotonic()
        fake.requests.clear()  # the bodies are not wanted
        recent = [t for t in times[-(limit or 0):] if t > now - WINDOW_S] if limit else []
        if limit and len(recent) >= limit:
            refused.append(now)
            return Reply(429, {"error": "too many requests"}, {"Retry-After": str(int(recent[0] + WINDOW_S - now) + 1)})
        times.append(now)
        return answer(request)
    fake.answer = count
    return times, refused


def busiest(times):
    first = most = 0
    for i, t in enumerate(times):
        while times[first] <= t - WINDOW_S:
            first += 1
        most = max(most, i - first + 1)
    return most


def main():
    fakes = {"wandb": FakeWandb(), "mlflow": FakeMlflow(), "trackio": FakeTrackio(), "webhook": FakeWebhook()}
    seen = {name: limited(fake, LIMITS.get(name)) for name, fake in fakes.items()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config = tap.write(folder, "s.ini", tap.TINY_SWEEP)
        store = folder / "s.db"
        for fake in fakes.values():
            fake.start()
        env = servers.clean_env(folder, WANDB_API_KEY=KEY, WANDB_BASE_URL=fakes["wandb"].url,
                                MLFLOW_TRACKING_URI=fakes["mlflow"].url, TRACKIO_SERVER_URL=fakes["trackio"].url,
                                TRACKIO_WRITE_TOKEN=fakes["trackio"].token, TRAWL_WEBHOOK_URL=fakes["webhook"].url)
        begin = time.monotonic()
        subprocess.run([TRAWL, "sweep", config, "--store", store, "--name", "many", "--trials", str(options.runs),
                        "--track", ",".join(fakes), "--quiet"], env=env, check=True, stdout=subprocess.DEVNULL)
        swept = time.monotonic() - begin
        subprocess.run([TRAWL, "sync", "--store", store], env=env, check=True, timeout=options.sync_limit)
        took = time.monotonic() - begin
        for fake in fakes.values():
            fake.stop()
        ended = {"wandb": sum(r.exitcode == 0 for r in fakes["wandb"].runs.values()),
                 "mlflow": sum(r.status == "FINISHED" for r in fakes["mlflow"].runs.values()),
                 "trackio": sum("result/state" in r["metrics"] or "study/state" in r["metrics"]
                                for r in fakes["trackio"].rows.values()),
                 "webhook": len(fakes["webhook"].of_type("result")) + len(fakes["webhook"].of_type("study_end"))}
    rows = []
    for name, (times, refused) in seen.items():
        assert not fakes[name].broken, fakes[name].broken
        assert ended[name] >= options.runs + 1, (name, ended)
        rows.append({"tracker": name, "runs": options.runs, "requests": len(times), "most_in_60_s": busiest(times),
                     "refused": len(refused), "runs_sent_to_their_end": ended[name] - 1, "sweep_s": swept, "all_sent_s": took,
                     "done_after_s": times[-1] - begin})
        print("%-8s %6d requests, at most %4d in 60 s, %d refused, %d runs sent to their end after %.0f s" % (
            name, len(times), busiest(times), len(refused), ended[name] - 1, times[-1] - begin), flush=True)
    if options.out:
        measure.result_table.write(options.out, measure.place(options.trawl), rows)


main()
