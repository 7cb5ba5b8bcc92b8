#!/usr/bin/env python3
"""data_parallel.py - steps a second of one training on 1, 2, 4 ... devices (train.devices), with the same batch for each.

usage: bench/data_parallel.py TRAWL [--devices 1,2,4] [--device cuda] [--repeats 5] [--seconds 1s] [--out FILE] [SETTING ...]
A SETTING is CONFIG[,section.key=value]...; without one those of SETTINGS. For N devices train.total_agents and
train.minibatch_size are N times the setting's, so that every device has as much to do as a single one. `times` is the rate
over that of one device: the aim on four GPUs is 3.6. With --device cpu it only shows that everything runs: devices share
the cores.
"""

import argparse
import json
import subprocess
import sys

import measure

SETTINGS = [
    "bench/configs/breakout-128-gpu.ini",
    "bench/configs/breakout-128-gpu.ini,policy.hidden_size=512",
    "examples/pong-gpu.ini",
]
AIM = {2: 1.8, 4: 3.6}
SIZES = ("train.total_agents", "train.minibatch_size")


def resolved(trawl, words):
    """The config's own sizes, as the program reads them."""
    text = subprocess.run([trawl, "train", *words, "--print-config"], stdout=subprocess.PIPE, text=True, check=True).stdout
    section, sizes = "", {}
    for line in text.splitlines():
        line = line.split(";")[0].strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line:
            key, value = (part.strip() for part in line.split("=", 1))
            if section + "." + key in SIZES:
                sizes[section + "." + key] = int(float(value.replace("_", "").replace("k", "e3").replace("M", "e6")))
    return sizes


def rate(arguments, setting, n):
    path, *pairs = setting.split(",")
    words = [path]
    for pair in pairs:
        key, value = pair.split("=", 1)
        words += ["--" + key, value]
    for key, value in resolved(arguments.trawl, words).items():
        words += ["--" + key, str(value * n)]
    run = measure.run_json([arguments.trawl, "bench", "train", *words, "--train.device", arguments.device,
                            "--train.devices", str(n), "--repeats", str(arguments.repeats), "--seconds", str(arguments.seconds), "--json"])
    return run["steps_per_s"], run["steps_per_s_min"], run["steps_per_s_max"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trawl")
    parser.add_argument("settings", nargs="*", default=SETTINGS)
    parser.add_argument("--devices", default="1,2,4")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", default="1s")
    parser.add_argument("--out")
    arguments = parser.parse_intermixed_args()
    counts = [int(n) for n in arguments.devices.split(",")]
    rows = []
    print(measure.place(arguments.trawl) + "\n")
    print("| setting | devices | steps/s (least to most) | times |\n|---|---|---|---|")
    for setting in arguments.settings:
        one = None
        for n in counts:
            median, least, most = rate(arguments, setting, n)
            one = one or median / n  # of the first count, which is 1 unless --devices says otherwise
            times = median / one
            row = {"setting": setting, "devices": n, "steps_per_s": median, "least": least, "most": most, "times": times}
            if n in AIM and arguments.device == "cuda":
                row["aim"] = AIM[n]
                row["reached"] = times >= AIM[n]
            rows.append(row)
            print("| %s | %d | %.4g (%.4g to %.4g) | %.2f |" % (setting, n, median, least, most, times), flush=True)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
