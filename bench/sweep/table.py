#!/usr/bin/env python3
"""table.py - tables out of studies: the lines that `trawl-bench sweep --json` and peers.py print.

usage: table.py [--against METHOD] [--methods A,B] [--seeds 6-19] [--unpaired] [--problems] [--best FRONTS.json] STUDIES.jsonl ...

First table: mean regret over problems after 30, 60, 100 and 150 trials and at a spent cost of 5, 10, 15 and 20 reference costs, each the
mean over the problems of the mean over seeds, with a 95 % bootstrap interval (seeds drawn again within each problem).
A cell counts only problems and seeds that every method of the table has with that many trials; "n" says how many pairs.
Second: each method against one other on the pairs of (problem, seed) that both have: the ratio of the mean regrets with its
interval (pairs drawn again), and the share of pairs in which it is the lower. --unpaired compares, after it, the means over all
seeds that each of the two has, problem by problem (of those with at least 3 seeds of both), every problem with the same weight,
and counts the problems on which it is lower:
a seed fixes the noise of trial k, but two methods try different points from the start, so that their luck is not shared and
more seeds of one of them help. A study with branches has their number after its method's name: pareto+4. --problems adds a row for each problem, --best the
number of the second trial whose true score is at least a share of the best known one (not of the way to it).
"""
import argparse
import json
import random
import statistics

CHECKPOINTS = (30, 60, 100, 150)
UNITS = (5.0, 10.0, 15.0, 20.0)
COLUMNS = (*CHECKPOINTS, *UNITS)  # whole numbers are trials
DRAWS = 1000


def read(paths, seeds):
    studies = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                s = json.loads(line)
                if seeds and not seeds[0] <= s["seed"] <= seeds[-1]:
                    continue
                more = (f"+{s['branches']}" if s.get("branches") else "") + (f" x{s['parallel']}" if s["parallel"] > 1 else "")
                key = (s["method"] + more, s["problem"], s["seed"])
                if key not in studies or len(s["regret"]) > len(studies[key]["regret"]):
                    studies[key] = s
    return studies


def value(study, column):
    """Regret at a checkpoint or at the spent cost; None: the study did not get there."""
    if column in UNITS:
        if study["spent"][-1] < column and len(study["regret"]) < CHECKPOINTS[-1]:
            return None
        at = [r for r, spent in zip(study["regret"], study["spent"]) if spent <= column]
        return at[-1] if at else 1.0
    return study["regret"][column - 1] if len(study["regret"]) >= column else None


def second(study, share):
    """Number of the second trial that reaches a share of the way from median to best."""
    past = [i + 1 for i, v in enumerate(study["reached"]) if v is not None and v >= share]
    return past[1] if len(past) > 1 else None


def second_of_best(study, known, share):
    """Number of the second trial whose score is a share of the best known one."""
    least = (share * known["best_score"] - known["ref_score"]) / (known["best_score"] - known["ref_score"])
    return second(study, least)


def best_table(studies, methods, fronts):
    with open(fronts, encoding="utf-8") as file:
        known = json.load(file)
    shares = (0.8, 0.9, 0.95, 0.99)
    print("\nMedian number of the second trial whose true score is a share of the best known score, over studies (-: more "
          "than half never), and in how many of them it came:\n")
    print("| problem | method | trials | " + " | ".join(f"{s:.0%}" for s in shares) + " |")
    print("|---|---|---|" + "---|" * len(shares))
    for problem in sorted({p for _, p, _ in studies}):
        for m in methods:
            mine = [s for (o, p, _), s in studies.items() if (o, p) == (m, problem)]
            cells = []
            for share in shares:
                at = sorted(second_of_best(s, known[problem], share) or 10 ** 9 for s in mine)
                n = sum(a < 10 ** 9 for a in at)
                middle = at[len(at) // 2] if at else 10 ** 9
                cells.append(f"{middle if middle < 10 ** 9 else '-'} ({n} of {len(at)})")
            if mine:
                print(f"| {problem} | {m} | {max(len(s['regret']) for s in mine)} | " + " | ".join(cells) + " |")


def interval(draw):
    values = sorted(draw() for _ in range(DRAWS))
    return values[int(0.025 * DRAWS)], values[int(0.975 * DRAWS)]


def by_problem(pairs):
    groups = {}
    for problem, v in pairs:
        groups.setdefault(problem, []).append(v)
    return groups


def mean_of_means(groups):
    return statistics.fmean(statistics.fmean(v) for v in groups.values())


def cell(studies, methods, method, column, rng):
    keys = [(p, s) for (m, p, s) in studies if m == method
            and all((o, p, s) in studies and value(studies[o, p, s], column) is not None for o in methods)]
    if not keys:
        return "-", 0
    groups = by_problem([(p, value(studies[method, p, s], column)) for p, s in keys])
    low, high = interval(lambda: mean_of_means({p: rng.choices(v, k=len(v)) for p, v in groups.items()}))
    return f"{mean_of_means(groups):.3f} ({low:.3f} to {high:.3f})", len(keys)


def against(studies, method, other, column, rng):
    pairs = [(value(studies[method, p, s], column), value(studies[other, p, s], column))
             for (m, p, s) in studies if m == method and (other, p, s) in studies]
    pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not pairs:
        return "-"
    ratio = lambda some: sum(a for a, _ in some) / max(sum(b for _, b in some), 1e-12)
    low, high = interval(lambda: ratio(rng.choices(pairs, k=len(pairs))))
    wins = sum(a < b for a, b in pairs) / len(pairs)
    return f"{ratio(pairs):.2f} ({low:.2f} to {high:.2f}), {wins:.0%} of {len(pairs)}"


def unpaired(studies, method, other, column, rng):
    """Ratio of the means over problems of the means over seeds; seeds of each method drawn again within each problem."""
    groups = [by_problem([(p, value(s, column)) for (m, p, _), s in studies.items()
                          if m == name and value(s, column) is not None]) for name in (method, other)]
    problems = [p for p in groups[0] if min(len(g.get(p, [])) for g in groups) >= 3]
    if not problems:
        return "-"
    some = [{p: g[p] for p in problems} for g in groups]
    ratio = lambda mine, theirs: mean_of_means(mine) / max(mean_of_means(theirs), 1e-12)
    again = lambda g: {p: rng.choices(v, k=len(v)) for p, v in g.items()}
    low, high = interval(lambda: ratio(again(some[0]), again(some[1])))
    n_mine, n_theirs = (sum(map(len, g.values())) for g in some)
    lower = sum(statistics.fmean(some[0][p]) < statistics.fmean(some[1][p]) for p in problems)
    return f"{ratio(*some):.2f} ({low:.2f} to {high:.2f}), lower on {lower} of {len(problems)}, {n_mine} and {n_theirs}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="pareto", help="the method of the second table")
    parser.add_argument("--methods", help="only these, in this order")
    parser.add_argument("--unpaired", action="store_true", help="also compare the means over all seeds of each")
    parser.add_argument("--problems", action="store_true")
    parser.add_argument("--seeds", type=lambda t: [int(v) for v in t.split("-")], help="only these, first-last")
    parser.add_argument("--best", metavar="FRONTS", help="best known fronts, as bench/sweep/fronts.json")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    studies, rng = read(args.files, args.seeds), random.Random(1)
    found = sorted({m for m, _, _ in studies})
    methods = [m for m in args.methods.split(",") if m in found] if args.methods else found
    heads = " | ".join(f"spent {c:g}" if c in UNITS else f"{c} trials" for c in COLUMNS)
    cells = {m: [cell(studies, methods, m, c, rng) for c in COLUMNS] for m in methods}
    counts = " | ".join(str(n) for _, n in cells[methods[0]])
    print(f"| method | {heads} | latency p50, p95 ms |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for m in methods:
        mine = [s for (o, _, _), s in studies.items() if o == m]
        ms = [statistics.median(s[f"latency_{q}_ms"] for s in mine if isinstance(s[f"latency_{q}_ms"], (int, float)))
              for q in ("p50", "p95")]
        print(f"| {m} | " + " | ".join(text for text, _ in cells[m]) + f" | {ms[0]:.3g}, {ms[1]:.3g} |")
    print(f"| *pairs of problem and seed* | {counts} | |")

    def ratios(compare):
        print(f"| against | {heads} |")
        print("|---|" + "---|" * len(COLUMNS))
        for m in methods:
            if m != args.against and args.against in found:
                print(f"| {m} | " + " | ".join(compare(studies, args.against, m, c, rng) for c in COLUMNS) + " |")

    print(f"\nRegret of `{args.against}` over that of each, and the share of pairs where it is lower:\n")
    ratios(against)
    if args.unpaired:
        print(f"\nThe same over all seeds that each has (problems on which it is lower, studies of `{args.against}` and of the other):\n")
        ratios(unpaired)
    print("\nMedian number of the second trial past a share of the way from the median of random designs to the best known "
          "score (-: more than half never), and the recommended point's regret and gap in score, over the pairs that every "
          "method has:\n")
    print("| method | 80 % | 90 % | 95 % | 99 % | recommended, regret | gap to best seen |")
    print("|---|---|---|---|---|---|---|")
    whole = {k for k, s in studies.items() if len(s["regret"]) >= CHECKPOINTS[-1]}
    for m in methods:
        mine = [studies[m, p, s] for (o, p, s) in whole if o == m and all((n, p, s) in whole for n in methods)]
        if not mine:
            continue
        texts = []
        for share in (0.8, 0.9, 0.95, 0.99):
            at = sorted(second(s, share) or 10 ** 9 for s in mine)[len(mine) // 2]
            texts.append("-" if at == 10 ** 9 else str(at))
        number = lambda key: statistics.fmean(s[key] for s in mine if isinstance(s[key], (int, float)))
        print(f"| {m} | " + " | ".join(texts) + f" | {number('recommended_regret'):.3f} | {number('recommended_gap'):.3f} |")
    if args.best:
        best_table(studies, methods, args.best)
    if args.problems:
        print(f"\n| problem | method | {heads} | seeds |")
        print("|---|---|" + "---|" * (len(COLUMNS) + 1))
        for p in sorted({p for _, p, _ in studies}):
            for m in methods:
                mine = [s for (o, q, _), s in studies.items() if o == m and q == p]
                means = [[v for v in (value(s, c) for s in mine) if v is not None] for c in COLUMNS]
                print(f"| {p} | {m} | " + " | ".join(f"{statistics.fmean(v):.3f}" if v else "-" for v in means)
                      + f" | {len(mine)} |")


if __name__ == "__main__":
    main()
