#!/usr/bin/env python3
"""data_parallel.py - steps a second of one training on 1, 2, 4 ... devices (train.devices), with the same batch for each.

usage: bench/data_parallel.py TRAWL [--devices 1,2,4] [--device cuda] [--repeats 5] [--seconds 1s] [--out FILE.csv] [SETTING ...]
A SETTING is CONFIG[,section.key=value]...; without one those of SETTINGS. For N devices train.total_agents and
train.minibatch_size are N times the setting's, so that every device has as much to do as a single one. `times` is the rate
over that of one device: the aim on four GPUs is 3.6. With --device cpu it only shows that everything runs: devices share
the cores.
"""

import configparser
import sys

import measure

SETTINGS = [
    "bench/configs/breakout-128-gpu.ini",
    "bench/configs/breakout-128-gpu.ini,policy.hidden_size=512",
    "examples/pong-gpu.ini",
]
AIM = {2: 1.8, 4: 3.6}


def rate(arguments, setting, n):
    words, config = measure.setting_words(setting), configparser.ConfigParser(interpolation=None)
    config.read_string(measure.resolved(arguments.trawl, words))
    for key in ("total_agents", "minibatch_size"):
        words += ["--train." + key, str(n * config.getint("train", key))]
    return measure.run_json([arguments.trawl, "bench", "train", *words, "--train.device", arguments.device,
                             "--train.devices", str(n), "--repeats", str(arguments.repeats), "--seconds", arguments.seconds, "--json"])


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("settings", nargs="*", default=SETTINGS)
    parser.add_argument("--devices", default="1,2,4")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", default="1s")
    parser.add_argument("--out")
    arguments = parser.parse_intermixed_args()
    about, rows = measure.place(arguments.trawl), []
    print(about + "\n\n| setting | devices | steps/s (least to most) | times |\n|---|---|---|---|")
    for setting in arguments.settings:
        one = None
        for n in map(int, arguments.devices.split(",")):
            run = rate(arguments, setting, n)
            one = one or run["steps_per_s"] / n  # of the first count, which is 1 unless --devices says otherwise
            rows.append({"setting": setting, "devices": n, "steps_per_s": run["steps_per_s"], "least": run["steps_per_s_min"],
                         "most": run["steps_per_s_max"], "times": run["steps_per_s"] / one, "aim": AIM.get(n) if arguments.device == "cuda" else None})
            print("| {setting} | {devices} | {steps_per_s:.4g} ({least:.4g} to {most:.4g}) | {times:.2f} |".format(**rows[-1]), flush=True)
            if arguments.out:
                measure.result_table.write(arguments.out, about, rows)


if __name__ == "__main__":
    sys.exit(main())
