#!/usr/bin/env python3
"""fronts.py - a front of each game from one short sweep, trained again under fresh seeds, beside a published front.

usage: bench/studies/fronts.py run TRAWL PUBLISHED.csv [GAME[=WEIGHT] ...] --out DIR [--seconds 540] [--devices 0,1] [--libraries DIR] [--starts EXPERIMENTS.json]
       bench/studies/fronts.py again TRAWL PUBLISHED.csv CONFIG.ini ... --out DIR [--seconds 540] [--devices 0,1] [--libraries DIR]
       bench/studies/fronts.py table TRAWL PUBLISHED.csv RUNS.jsonl ... --out OUT.csv --levels LEVELS.csv [--known OUT.csv]

run    deals the games (all of fronts_space.py, where none is named) out to the devices, and plays those of a device one after another, within --seconds in
       all: each by its weight, half of its time for a sweep with --lanes trials at a time, the rest for --points of what it found, which are chosen
       to be ahead of the published front, each trained --seeds times in a process of its own, nothing beside it on the device. DIR gets a line in runs.jsonl
       for each training as it ends, a store for each game, and the configs that were trained; a study that already exists continues, up to the steps that the table has now. A device is a number
       of CUDA's or cpu; each gets an equal share of the cores.
again  trains configs, GAME-TRIAL.ini, in the same way without a sweep, one after another as they stand, each on the device that is free.
table  makes the tables of those lines: OUT.csv has a row for each config, medians over its seeds. For each level of the published front that config
       of ours is sought which reaches it soonest; LEVELS.csv has a row for each game: how many levels ours reaches, how many sooner by the seconds from process
       start, and how many by those of training alone, which is the clock of the published ones.

PUBLISHED.csv has the columns env, perf, score and seconds (of training, one run each).
"""
import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402
from fronts_space import GAMES, metric_of, name_of, published_starts, sections, steps_of  # noqa: E402

FRESH_SEED = 1_000_000_007
SWEEP_SHARE = 0.5  # of a game's time
START_S = 0.48  # of a process: its start, and what a worker that lives on has had once
END_S = 0.3  # of a process, after its evaluation

# a trial: seconds from a process' start until it is trained, number, score (of all its seeds) in the unit of the published table, seconds of the whole process
Member = collections.namedtuple("Member", "ready_s number level whole_s")


def level_of(game, row):
    return float(row[GAMES[game].get("column", "perf")])


def published_front(path, game):
    """(seconds, level) of a game, those that nothing else beats, cheapest first."""
    with open(path, encoding="utf-8") as table:
        rows = [r for r in csv.DictReader(line for line in table if not line.startswith("#")) if r["env"] == game]
    front, best = [], float("-inf")
    for seconds, level in sorted((float(r["seconds"]), level_of(game, r)) for r in rows):
        if level > best:
            best = level
            front.append((seconds, level))
    return front


def chosen(members, published, n, room_s):
    """n of the members at most, whose processes take room_s together at most: each time that which is ahead at the most levels of those that are left, the
    better one of equals; then, for levels at which nothing is ahead, the most expensive first, the best that is in time for them."""
    left, picks = list(published), []
    while left and len(picks) < n:
        def gain(m):
            return sum(m.ready_s <= seconds and m.level >= level for seconds, level in left)

        fits = [m for m in members if m.whole_s <= room_s and m not in picks]
        best = max(fits, key=lambda m: (gain(m), m.level), default=None)
        if best is None:
            break
        if gain(best) == 0:
            seconds, _ = left.pop()
            best = max((m for m in fits if m.ready_s <= seconds), key=lambda m: m.level, default=None)
        if best is not None:
            picks.append(best)
            room_s -= best.whole_s
            left = [(seconds, level) for seconds, level in left if best.ready_s > seconds or best.level < level]
    return sorted(picks)


def member(trial, factor, evaluations):
    reached = trial["score"] if trial["seeds_mean"] is None else trial["seeds_mean"]
    whole_s = trial["cost_s"] + (trial["eval_s"] or 0) * evaluations + START_S + END_S  # no eval_s: no episode of the evaluation ended
    return Member(trial["cost_s"] + START_S, trial["number"], reached * factor, whole_s)


class Bench:
    """What the threads of the devices share."""

    def __init__(self, args):
        self.args, self.lock, self.ends = args, threading.Lock(), time.monotonic() + args.seconds
        os.makedirs(args.out, exist_ok=True)

    def left_s(self):
        return self.ends - time.monotonic()

    def note(self, text):
        print(f"{self.args.seconds - self.left_s():6.1f} {text}", flush=True)

    def recorded(self):
        path = os.path.join(self.args.out, "runs.jsonl")
        with self.lock:
            return [json.loads(line) for line in open(path, encoding="utf-8")] if os.path.exists(path) else []

    def record(self, row):
        with self.lock, open(os.path.join(self.args.out, "runs.jsonl"), "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        self.note(" ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))


class Device:
    """One device of a bench: plays its games. Only processes know about it, by their environment and their cores."""

    def __init__(self, bench, name, cores):
        self.bench, self.args, self.cores = bench, bench.args, cores
        self.kind = "cpu" if name == "cpu" else "cuda"
        self.env = dict(os.environ) if name == "cpu" else dict(os.environ, CUDA_VISIBLE_DEVICES=name)

    def trawl(self, *words, timeout):
        done = subprocess.run([self.args.trawl, *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=max(timeout, 1), check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)[:200]}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def play(self, games):
        os.sched_setaffinity(0, self.cores)  # of this thread and the processes that it starts
        for i, (game, weight) in enumerate(games):
            budget_s = self.bench.left_s() * weight / sum(w for _, w in games[i:])
            try:
                self.game(game, time.monotonic() + budget_s)
            except Exception as fault:  # the games after it still have their turn
                self.bench.note(f"{game}: {type(fault).__name__}: {fault}")

    def game(self, game, ends):
        store, budget_s = os.path.join(self.args.out, game + ".db"), ends - time.monotonic()
        space = os.path.join(self.args.out, game + "-space.ini")
        seconds = budget_s * SWEEP_SHARE
        if os.path.exists(store):
            seconds += float(open(store + ".seconds", encoding="utf-8").read())  # the limit is that of all its runs
            words = ["--resume", game, "--sweep.train.total_timesteps.max", str(steps_of(game, self.args.shorter)[2])]
        else:
            lanes = min(self.args.lanes, 2) if GAMES[game].get("host") else self.args.lanes
            given = json.load(open(self.args.starts, encoding="utf-8")) if self.args.starts else {}
            starts = published_starts(game, given)
            with open(space, "w", encoding="utf-8") as out:
                out.write(sections(game, name_of(game, self.args.libraries), self.args.episodes, self.kind, self.args.shorter, starts))
            words = [space, "--name", game, "--runs-per-device", str(lanes), "--sweep.worker_memory", "0",
                     "--sweep.max_cost", str(min(self.args.max_cost, published_front(self.args.published, game)[-1][0]))]
            if len(starts) > 1:  # the study is made, and gets them as its first trials; half of them, from cheap to expensive, and then the other half
                self.trawl("sweep", "--store", store, "-q", *words, "--wall-time", "0.01s", timeout=60)
                searched = [line[len("[sweep."):-2] for line in open(space, encoding="utf-8") if line.startswith("[sweep.")]
                for start in starts[:1] + starts[1::2] + starts[2::2]:
                    try:
                        self.trawl("try", game, "--store", store, *[word for key in searched for word in ("--" + key, self.steps(key, start[key]))], timeout=60)
                    except RuntimeError as fault:  # the others are started from
                        self.bench.note(f"{game}: {fault}")
                words = ["--resume", game] + (["--trials", str(len(starts))] if isinstance(given[game], list) else [])
        words += ["--wall-time", f"{seconds:.1f}s"]
        with open(store + ".seconds", "w", encoding="utf-8") as out:
            out.write(str(seconds))
        self.trawl("sweep", "--store", store, "-q", *words, timeout=budget_s + 30)
        trials = json.loads(self.trawl("show", game, "--store", store, "--json", timeout=60))["trials"]
        done = [t for t in trials if t["state"] == "done" and t["score"] is not None]
        self.bench.note(f"{game}: {len(done)} of {len(trials)} trials in {seconds:.0f} s, best {max((t['score'] for t in done), default=0):.4f}")
        self.confirm(game, store, done, ends)

    def steps(self, key, value):
        return str(round(value / self.args.shorter) if key == "train.total_timesteps" else value)

    def confirm(self, game, store, trials, ends):
        args, factor = self.args, GAMES[game].get("factor", 1)
        done = [r for r in medians([{"sweep": 0, **r} for r in self.bench.recorded() if r["game"] == game]) if r["seeds"] >= args.seeds]
        done_trials, done = {r["trial"] for r in done}, done + (earlier(args.known, game) if args.known else [])
        left = [(seconds, level) for seconds, level in published_front(args.published, game)
                if not any(r["seconds"] <= seconds and r[metric_of(game).rpartition("/")[2]] * factor >= level for r in done)]
        more = args.confirm_episodes / args.episodes
        configs = {tuple(t["params"].values()): member(t, factor, more) for t in reversed(trials) if t["number"] not in done_trials}  # each once, however many seeds it had
        picks = chosen(list(configs.values()), left, args.points, (ends - time.monotonic()) / args.seeds)
        for pick in picks:
            self.trawl("export", game, "--store", store, "--pick", f"trial={pick.number}", "-o", self.config(game, pick), timeout=60)
        for seed in range(FRESH_SEED, FRESH_SEED + args.seeds):
            for pick in picks:
                if pick.whole_s <= ends - time.monotonic():
                    self.train(game, pick.number, self.config(game, pick), seed, {"expected": pick.level, "trials": len(trials)})

    def train(self, game, number, config, seed, more, words=()):
        begin = time.monotonic()
        episodes = [] if metric_of(game).startswith("train/") else ["--train.eval_episodes", str(self.args.confirm_episodes)]
        run = json.loads(self.trawl("train", config, "--json", "-q", "--train.seed", str(seed), *episodes, *words, timeout=self.bench.left_s()))
        scored = run["train"] if metric_of(game).startswith("train/") else run
        self.bench.record({"game": game, "trial": number, "seed": seed, "seconds": time.monotonic() - begin - run["eval_s"],
                           "training_s": run["cost_s"], "start_s": run["start_s"], "perf": scored["perf"], "score": scored["score"],
                           "steps": run["env_steps"], "episodes": scored["episodes"], "unfinished": run["unfinished"], "device": run["device"], **more})

    def again(self, configs):
        """All seeds of a config of the list that nobody has begun, until the list is empty."""
        os.sched_setaffinity(0, self.cores)
        while configs:
            path = configs.pop(0)
            game, _, number = os.path.basename(path).removesuffix(".ini").rpartition("-")
            name = next((line.split("=", 1)[1].strip() for line in open(path, encoding="utf-8") if line.startswith("name =")), game)
            library = ["--env.name", os.path.join(os.path.abspath(self.args.libraries), os.path.basename(name)), "--env.hash", ""] if name.endswith(".so") else []
            for seed in range(FRESH_SEED, FRESH_SEED + self.args.seeds):
                try:
                    self.train(game, int(number), path, seed, {"trials": 0}, library)
                except Exception as fault:  # the configs after it still have their turn
                    self.bench.note(f"{path}: {type(fault).__name__}: {fault}")
                    break

    def config(self, game, pick):
        return os.path.join(self.args.out, f"{game}-{pick.number}.ini")


def dealt(games, n):
    """Games with their weights for each of n devices, the heaviest first to the one that has least."""
    hands = [[] for _ in range(n)]
    for game in sorted(games, key=lambda g: -g[1]):
        min(hands, key=lambda hand: sum(w for _, w in hand)).append(game)
    return hands


def devices(bench):
    names, cores = bench.args.devices.split(","), sorted(os.sched_getaffinity(0))
    share = max(len(cores) // len(names), 1)
    return [Device(bench, name, cores[i * share:(i + 1) * share] or cores) for i, name in enumerate(names)]


def at_once(works):
    threads = [threading.Thread(target=work, args=(what,)) for work, what in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(args):
    bench = Bench(args)
    games = [(word.partition("=")[0], float(word.partition("=")[2] or GAMES[word.partition("=")[0]]["weight"])) for word in args.games or GAMES]
    workers = devices(bench)
    hands = dealt(games, len(workers))
    for hand in hands:
        bench.note(" ".join(game for game, _ in hand))
    at_once([(device.play, hand) for device, hand in zip(workers, hands)])


def again(args):
    bench, configs = Bench(args), list(args.configs)
    at_once([(device.again, configs) for device in devices(bench)])


def medians(runs):
    """A row for each config that was trained."""
    rows, configs = [], {}
    for r in runs:
        configs.setdefault((r["game"], r["sweep"], r["trial"]), []).append(r)
    for (game, sweep, trial), group in configs.items():
        row = {"game": game, "sweep": sweep, "trial": trial, "seeds": len(group)}
        for key, digits in (("seconds", 3), ("training_s", 3), ("perf", 4), ("score", 4)):
            row[key] = round(statistics.median(r[key] for r in group), digits)
        rows.append(row | {"seconds_low": round(min(r["seconds"] for r in group), 3), "seconds_high": round(max(r["seconds"] for r in group), 3),
                           "perf_low": round(min(r["perf"] for r in group), 4), "perf_high": round(max(r["perf"] for r in group), 4),
                           "steps_m": round(group[0]["steps"] / 1e6, 2), "trials": group[0]["trials"], "device": group[0]["device"]})
    return sorted(rows, key=lambda r: (list(GAMES).index(r["game"]), r["seconds"]))


def beside(published, rows):
    """Levels of the published front, how many of them ours reaches, and how many sooner."""
    game = rows[0]["game"]
    key, factor = metric_of(game).rpartition("/")[2], GAMES[game].get("factor", 1)
    found = {"game": game, "configs": len(rows), "levels": len(published)}
    for name, clock in (("ahead", "seconds"), ("ahead_in_training", "training_s")):
        soonest = [(s, min((r[clock] for r in rows if round(r[key] * factor, 4) >= level), default=None)) for s, level in published]
        found[name] = sum(mine is not None and mine <= s for s, mine in soonest)
        found["reached"] = sum(mine is not None for _, mine in soonest)
        ratios = [s / mine for s, mine in soonest if mine is not None]
        found["times_as_fast" + name[5:]] = round(statistics.median(ratios), 2) if ratios else None
    best = max(rows, key=lambda r: r[key])
    return found | {"published_best": published[-1][1], "published_s": published[-1][0], "best": round(best[key] * factor, 4), "best_s": best["seconds"],
                    "first_published_s": published[0][0], "first_s": rows[0]["seconds"]}


def earlier(path, game=None):
    """Rows of a table that was made before."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [{key: value if key in ("game", "device") else float(value) if "." in value else int(value) for key, value in row.items()}
            for row in rows if game in (None, row["game"])]


def table(args):
    before = earlier(args.known) if args.known else []
    sweeps = max((r["sweep"] for r in before), default=0)
    runs = [{"sweep": sweeps + i + 1, **json.loads(line)} for i, path in enumerate(args.runs) for line in open(path, encoding="utf-8")]
    rows = sorted(before + medians(runs), key=lambda r: (list(GAMES).index(r["game"]), r["seconds"]))
    rows = [r for r in rows if r["seeds"] >= args.seeds]  # not what the end of the time left incomplete
    levels = [beside(published_front(args.published, game), [r for r in rows if r["game"] == game]) for game in dict.fromkeys(r["game"] for r in rows)]
    place = measure.place(args.trawl)
    measure.result_table.write(args.out, place, rows)
    measure.result_table.write(args.levels, place, levels)
    for row in levels:
        print(json.dumps(row))


def main():
    parser = measure.parser(__doc__, program=False)
    commands = parser.add_subparsers(dest="what", required=True)
    running, repeating, tables = commands.add_parser("run"), commands.add_parser("again"), commands.add_parser("table")
    for command in (running, repeating, tables):
        command.add_argument("trawl", type=os.path.abspath)
        command.add_argument("published")
        command.add_argument("--out", required=True)
        command.add_argument("--known", help="an OUT.csv of before: its rows are in the table too, and what is ahead by them is not trained again")
    running.add_argument("games", nargs="*")
    repeating.add_argument("configs", nargs="+")
    tables.add_argument("--seeds", type=int, default=5, help="the least number that makes a row")
    for command in (running, repeating):
        command.add_argument("--seconds", type=float, default=540)
        command.add_argument("--devices", default="0")
        command.add_argument("--libraries", default=".")
        command.add_argument("--seeds", type=int, default=5)
        command.add_argument("--confirm-episodes", type=int, default=4096, help="of an evaluation of a config that is trained again")
    running.add_argument("--starts", help="PufferLib's resources/constellation/experiments.json: searches begin with settings of its published "
                         "runs; where it has a list of settings for a game, these are all that is tried")
    running.add_argument("--points", type=int, default=8)
    running.add_argument("--lanes", type=int, default=3)
    running.add_argument("--max-cost", type=float, default=20, help="the most expensive trials that are sought, seconds; never more than the published front's")
    running.add_argument("--episodes", type=int, default=1024, help="of an evaluation")
    running.add_argument("--shorter", type=float, default=1, help="divide the steps of all trainings by this, to try the script")
    tables.add_argument("--levels", required=True)
    tables.add_argument("runs", nargs="+")
    args = parser.parse_args()
    {"run": run, "again": again, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
