#!/usr/bin/env python3
"""lanes.py - several trials at a time on one device: what they cost against alone, and how many end in an hour.

usage: bench/lanes.py TRAWL [--device cuda:0] [--lanes 1,2,4,8] [--trials 16] [--out FILE] [SETTING ...]
       bench/lanes.py TRAWL --drift SETTING        how the time of an iteration changes over a run alone
A SETTING is CONFIG[,section.key=value]...; without one those of SETTINGS. For each number of lanes one worker process
trains `trials` of each setting back to back, each lane given the next as soon as it is free; the first of each lane are
not counted. Cost is what the worker reports (docs/cuda.md), its ratio that to the mean of one lane.
"""
import os
import re
import statistics
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e")]
import measure  # noqa: E402
import worker  # noqa: E402

SETTINGS = [
    "examples/breakout-gpu.ini,train.total_timesteps=20M",
    "bench/configs/breakout-128-gpu.ini,train.total_timesteps=20M",
    "bench/configs/breakout-128-gpu.ini,train.total_timesteps=20M,policy.hidden_size=512",
    "examples/breakout-gpu.ini,train.total_timesteps=20M,policy.hidden_size=32,policy.num_layers=1",
    "examples/pong-gpu.ini",
    "bench/configs/published-breakout-a.ini,train.total_timesteps=10M",
]


def train(w, setting, text, lanes, trials, first):
    """text: the setting's config. Results of `trials` trials after one in each lane, and the seconds that they took."""
    ids = iter(range(first, first + lanes + trials))

    def give():
        trial = next(ids, None)
        if trial is not None:
            w.run(trial, re.sub(r"(?m)^seed = .*$", f"seed = {trial - first + 1}", text))

    for _ in range(lanes):
        give()
    ended, begin_s, counted = 0, None, []
    while ended < lanes + trials:
        m = w.wait(lambda m: m["type"] == "result")
        give()
        if m["state"] != "done":
            raise SystemExit("%s: %s" % (setting, m.get("reason")))
        ended += 1
        if ended == lanes:
            begin_s = time.monotonic()
        if m["trial"] >= first + lanes:
            counted.append(m)
    return counted, time.monotonic() - begin_s


def rest(w):
    """Messages of runs before are not needed any more."""
    w.others.clear()
    w.results.clear()


def measure_lanes(trawl, device, lanes, settings, trials):
    texts = [measure.resolved(trawl, measure.setting_words(setting)) for setting in settings]
    w = worker.Worker(trawl, texts[0], lanes=lanes, device=device)
    if w.reason:
        raise SystemExit(w.reason)
    rows, first = [], 0
    try:
        for setting, text in zip(settings, texts):
            results, seconds = train(w, setting, text, lanes, max(trials, 3 * lanes), first)
            first += 1000
            beats = w.messages("alive")
            rows.append({
                "setting": setting, "lanes": lanes, "trials": len(results), "seconds": seconds,
                "trials_per_hour": 3600 * len(results) / seconds,
                "cost_s": [r["cost_s"] for r in sorted(results, key=lambda r: r["trial"])],
                "wall_s": statistics.mean(r["wall_s"] for r in results),
                "methods": sorted({r["cost_method"] for r in results}),
                "perf": {r["trial"] % 1000: r["perf"] for r in results},
                "device_memory_mb": max([b["device_memory_bytes"] for b in beats], default=0) / 1e6,
                "memory_mb": max([b["memory_bytes"] for b in beats], default=0) / 1e6,
            })
            rest(w)
    finally:
        w.close()
    return w.hello["device"], rows


def table(rows):
    alone = {r["setting"]: r for r in rows if r["lanes"] == 1}
    print("%-5s %-9s %-9s %-6s %-7s %-9s %-9s %-8s %-7s %s" % (
        "lanes", "cost s", "sd %", "ratio", "wall s", "trials/h", "x alone", "same", "dev MB", "setting"))
    for r in rows:
        one = alone.get(r["setting"], r)
        mean = statistics.mean(r["cost_s"])
        both = [i for i in r["perf"] if i in one["perf"]]
        same = sum(r["perf"][i] == one["perf"][i] for i in both)
        print("%-5d %-9.4f %-9.2f %-6.3f %-7.3f %-9.0f %-9.2f %-8s %-7.0f %s" % (
            r["lanes"], mean, 100 * statistics.pstdev(r["cost_s"]) / mean, mean / statistics.mean(one["cost_s"]),
            r["wall_s"], r["trials_per_hour"], r["trials_per_hour"] / one["trials_per_hour"],
            "%d/%d" % (same, len(both)), r["device_memory_mb"], r["setting"]), flush=True)


def flat(row):
    """The row with its lists as their spread."""
    costs, perfs = row.pop("cost_s"), row.pop("perf")
    return {**row, "methods": " ".join(row["methods"]), "cost_s_median": statistics.median(costs), "cost_s_min": min(costs),
            "cost_s_max": max(costs), "perf_mean": statistics.fmean(perfs.values())}


def drift(trawl, device, setting):
    """Seconds of a million steps in each tenth of a run alone."""
    text = measure.resolved(trawl, measure.setting_words(setting) + ["--train.log_interval_s", "0.01"])
    w = worker.Worker(trawl, text, lanes=1, device=device)
    try:
        w.run(1, text)
        total = w.result(1)["env_steps"]
        points = [(m["env_steps"], m["wall_s"]) for m in w.messages("metrics")]
    finally:
        w.close()
    tenths = []
    for i in range(10):
        part = [p for p in points if total * i / 10 <= p[0] <= total * (i + 1) / 10]
        if len(part) > 1:
            tenths.append(1e6 * (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0]))
    print("ms for 1M steps, by tenths of the run: %s   %s" % (" ".join("%.3f" % (1e3 * s) for s in tenths), setting))


def main():
    p = measure.parser(__doc__)
    p.add_argument("settings", nargs="*")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--lanes", default="1,2,4,8")
    p.add_argument("--trials", type=int, default=16)
    p.add_argument("--out", help="CSV file")
    p.add_argument("--drift", action="store_true")
    a = p.parse_intermixed_args()
    settings = a.settings or SETTINGS
    if a.drift:
        for setting in settings:
            drift(a.trawl, a.device, setting)
        return
    rows = []
    for lanes in map(int, a.lanes.split(",")):
        device, more = measure_lanes(a.trawl, a.device, lanes, settings, a.trials)
        rows += more
    table(rows)
    if a.out:
        measure.result_table.write(a.out, f"{device}; {measure.place(a.trawl)}", [flat(row) for row in rows])


if __name__ == "__main__":
    main()
