#!/usr/bin/env python3
"""dominate.py - how long does a study take until its front dominates a published one?

usage: bench/studies/dominate.py TRAWL PUBLISHED.csv GAME ... -o OUT.csv [--methods sobol,pareto,branches] [--seconds 60] [--studies 5]
                                 [--cards 1] [--beside 1] [--share 0.95] [--until SECONDS] [--libraries DIR] [--device cuda]

Each study is a sweep of the game's ranges in fronts_space.py by `sobol`, `pareto`, or `branches`: pareto with four branches a run, under the schedule without an end,
rates up to 4 times as high. Every run counts as it came, none is confirmed. The area that a published front dominates reaches over ln seconds from its cheapest
to its most expensive run, and from 0 to its perf; the share of it that a study's runs dominate too is taken after each run that ends. A row has the wall seconds to half, 80 % and --share of it (empty: not reached), the
share at the end, and the number of runs. Studies take turns by method and game, --beside at a time on each card; none begins that cannot end by --until.
"""
import concurrent.futures
import math
import os
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fronts  # noqa: E402
import fronts_space  # noqa: E402
import measure  # noqa: E402


def area(front, until):
    """Of ln seconds times perf that (seconds, perf) points dominate, up to a cost."""
    total, best, at = 0.0, 0.0, None
    for seconds, perf in [*sorted(p for p in front if p[0] < until), (until, 0.0)]:
        total += best * (math.log(seconds) - math.log(at)) if at else 0.0
        best, at = max(best, perf), seconds
    return total


def best_by(points, seconds):
    return max((perf for cost, perf in points if cost <= seconds), default=0.0)


def share(published, ours):
    """Of what the published front dominates, how much do points of ours dominate too?"""
    end = max(cost for cost, _ in published)
    steps = sorted({cost for cost, _ in published} | {max(cost, published[0][0]) for cost, _ in ours})
    common = [(cost, min(best_by(published, cost), best_by(ours, cost))) for cost in steps]
    return area(common, end) / area(published, end)


def config_of(game, method, args):
    text = fronts_space.sections(game, fronts_space.name_of(game, args.libraries), 256, args.device)
    if method == "branches":
        _, low, high = fronts_space.steps_of(game, 1)
        text = re.sub(r"(\[sweep\.train\.learning_rate\]\ndistribution = log\nmin = .*\nmax = )(.*)", lambda m: f"{m[1]}{4 * float(m[2])}", text)
        text = text.replace("[train]\n", f"[train]\ndecay_steps = {math.sqrt(low * high) / 2:.0f}\n", 1).replace("[sweep]\n", "[sweep]\nbranches = 4\n", 1)
        text += f"[sweep.train.decay_steps]\ndistribution = log\nmin = {low / 2:.0f}\nmax = {high / 2:.0f}\n"
    return text


def study(args, folder, published, game, method, seed, card):
    """A row: one study on a card."""
    path = os.path.join(folder, f"{game}-{method}-{seed}")
    row = {"game": game, "method": method, "study": seed, "s_50": "", "s_80": "", "s_share": "", "end": 0.0, "runs": 0}
    with open(path + ".ini", "w", encoding="utf-8") as out:
        out.write(config_of(game, method, args))
    words = [args.trawl, "sweep", path + ".ini", "--store", path + ".db", "--name", "s", "-q", "--seed", str(seed), "--sweep.method", "sobol" if method == "sobol" else "pareto",
             "--sweep.confirm", "0", "--wall-time", f"{args.seconds}s", "--sweep.trials", "0"]
    done = subprocess.run(words, env={**os.environ, "CUDA_VISIBLE_DEVICES": card}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    shown = subprocess.run([args.trawl, "show", "s", "--store", path + ".db", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode != 0 or shown.returncode != 0:
        print(f"{game} {method} {seed}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr, flush=True)
        return row
    trials = sorted((t for t in measure.json.loads(shown.stdout)["trials"] if t["state"] == "done"), key=lambda t: t["finished_ms"])
    begin, points = min((t["created_ms"] for t in trials), default=0), []
    for trial in trials:
        points.append((trial["cost_s"], trial["score"] * fronts_space.GAMES[game].get("factor", 1)))
        now, row["end"] = (trial["finished_ms"] - begin) / 1000, round(share(published, points), 4)
        for key, goal in (("s_50", 0.5), ("s_80", 0.8), ("s_share", args.share)):
            row[key] = row[key] or (f"{now:.1f}" if row["end"] >= goal else "")
    row["runs"] = sum(not t["origin"].startswith("branch") for t in trials)
    return row


def pool(args, folder):
    """Rows of all studies that were begun in time."""
    cards, begin, rows = queue.Queue(), time.monotonic(), []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if os.environ.get("CUDA_VISIBLE_DEVICES") else [str(k) for k in range(args.cards)]
    for _ in range(args.beside):
        for card in visible[:args.cards]:
            cards.put(card)
    fronts_of = {game: fronts.published_front(args.published, game) for game in args.games}

    def one(game, method, seed):
        card = cards.get()
        try:
            if time.monotonic() - begin + args.seconds > args.until:
                return
            rows.append(study(args, folder, fronts_of[game], game, method, seed, card))
            print(rows[-1], file=sys.stderr, flush=True)
        finally:
            cards.put(card)

    with concurrent.futures.ThreadPoolExecutor(args.cards * args.beside) as threads:
        for job in [threads.submit(one, game, method, seed) for seed in range(1, args.studies + 1) for method in args.methods.split(",") for game in args.games]:
            job.result()
    return sorted(rows, key=lambda r: (r["game"], r["method"], r["study"]))


def median_of(values, limit):
    """Of seconds; those that were not reached count as later than the rest."""
    middle = statistics.median_low(sorted(float(v) if v else math.inf for v in values))
    return f"{middle:.1f}" if middle < math.inf else f"> {limit}"


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("published")
    parser.add_argument("games", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--methods", default="sobol,pareto,branches")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--studies", type=int, default=5)
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--beside", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--until", type=float, default=math.inf)
    parser.add_argument("--libraries", default=".")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    where = measure.place(args.trawl)
    with tempfile.TemporaryDirectory() as folder:
        rows = pool(args, folder)
    measure.result_table.write(args.output, where, rows)
    for game in args.games:
        for method in args.methods.split(","):
            of = [r for r in rows if r["game"] == game and r["method"] == method]
            if of:
                print(f"{game} {method}: {len(of)} studies, half {median_of([r['s_50'] for r in of], args.seconds)} s, 80 % {median_of([r['s_80'] for r in of], args.seconds)} s, "
                      f"{args.share:.0%} {median_of([r['s_share'] for r in of], args.seconds)} s, at the end {statistics.median(r['end'] for r in of):.2f}, "
                      f"{statistics.median(r['runs'] for r in of):.0f} runs")


if __name__ == "__main__":
    main()
