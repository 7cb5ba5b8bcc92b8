#!/usr/bin/env python3
"""peers.py - the real Optuna and BoTorch on the problems of `trawl-bench sweep`, through `trawl-bench evaluate`.

usage: peers.py --out studies.jsonl [--data DIR] [--problems A,B] [--methods optuna-gp,...] [--seeds 6-19,0-5] [--trials 150]
                [--branches 0] [--processes N] [--seconds S] [--bench PROGRAM] [--fronts FILE]

methods:
  optuna-gp     GPSampler on two objectives, score (maximise) and ln cost (minimise); its defaults
  optuna-tpe    TPESampler on the same, its defaults
  optuna-nsga2  NSGAIISampler on the same, population 20 (its default, 50, would be a third of the trials)
  rustuna-tpe   TPESampler of Rustuna, Optuna in Rust, on the same, its defaults; an unfinished study starts again
  botorch       qLogNEHVI on (score, -ln cost): a SingleTaskGP each with BoTorch's default priors, min(2 d, 10) Sobol
                points, 10 restarts from 512 raw points, discrete values relaxed and rounded; reference: the worst of the
                first ten results less a tenth of their range; failed trials are left out

Seeds are paired with those of `trawl-bench sweep`: the noise of trial k of seed s is the same draw. A finished study is
one line appended to --out; a rerun skips what the file holds. After --seconds the program stops what is under way; its
trials are in --out.part, one a line, and a rerun tells them to the method (with a fresh random stream) and continues.
--unfinished FILE writes the measures of the studies in --out.part that are not done, as far as they got, and ends.
With --branches K each run of optuna-* gives the shorter runs on its way too, as `trawl-bench sweep --branches` plays them: they
are added to the study as finished trials from its tenth run on (so that its random start is ten runs, as without), and count in
the measures.
Start it with OMP_NUM_THREADS=1. Optuna needs torch and scipy.
"""
import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
import traceback
import warnings

PROBLEMS = ["lcbench-167168", "lcbench-189906", "lcbench-3945", "lcbench-189354", "arl-cc-cartpole-ppo",
            "arl-cc-cartpole-dqn", "arl-box2d-lunar-lander-dqn", "arl-cc-pendulum-sac", "arl-brax-halfcheetah-sac",
            "arl-minigrid-door-key-ppo", "arl-minigrid-four-rooms-ppo", "arl-cc-mountain-car-ppo", "branin-currin",
            "hartmann-steps", "rl-toy"]


class Evaluator:
    """A problem behind a pipe."""

    def __init__(self, args, problem):
        command = [args.bench, "evaluate", "--problem", problem, "--fronts", args.fronts]
        if args.data:
            command += ["--data", args.data]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.space = json.loads(self.ask("space"))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{line!r}: {answer.strip() or 'the evaluator ended'}")
        return answer

    def point(self, x, seconds):
        """(score, cost), score None when the trial failed."""
        words = self.ask("point " + " ".join(repr(float(v)) for v in x) + f" {seconds:.6f}").split()
        return (None, float(words[1])) if words[0] == "failed" else (float(words[1]), float(words[2]))

    def remember(self, part, old):
        """part: takes each trial as it ends; old: what an earlier call left of this study."""
        self.part, self.old = part, old

    def trial(self, propose, told):
        """One trial: an old one told again, or a proposal. propose() gives (natural values, what `told` needs)."""
        if self.old:
            known = self.old.pop(0)
            told(known["of"], *self.point(known["x"], known["s"]), True)
            return
        start = time.monotonic()
        x, of = propose()
        seconds = time.monotonic() - start
        score, cost = self.point(x, seconds)
        self.part({"x": x, "of": of, "s": round(seconds, 6)})
        told(of, score, cost, False)

    def branches(self):
        """Shorter runs on the way of the latest trial: (natural values, score, cost) of each."""
        return [(b["x"], b["score"], b["cost"]) for b in json.loads(self.ask("branches"))]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def pow2_range(p):
    return math.ceil(math.log2(p["min"])), math.floor(math.log2(p["max"]))


def logit(v):
    return math.log(v / (1 - v))


def clip(p, v):
    return min(max(v, p["min"]), p["max"])


# ---- Optuna ----

def distribution(p):
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    if p["scale"] == "categorical":
        return CategoricalDistribution(list(range(p["choices"])))
    if p["scale"] == "pow2":
        return IntDistribution(*pow2_range(p))
    if p["scale"] == "logit":
        return FloatDistribution(logit(p["min"]), logit(p["max"]))
    if p["int"]:
        return IntDistribution(math.ceil(p["min"]), math.floor(p["max"]), log=p["scale"] == "log")
    return FloatDistribution(p["min"], p["max"], log=p["scale"] == "log")


def natural(p, v):
    if p["scale"] == "pow2":
        return 2.0 ** v
    if p["scale"] == "logit":
        return clip(p, 1 / (1 + math.exp(-v)))
    return float(v)


def param(p, x):
    """Optuna's value of a natural one."""
    if p["scale"] == "pow2":
        return round(math.log2(x))
    if p["scale"] == "logit":
        return logit(x)
    return round(x) if p["int"] or p["scale"] == "categorical" else x


def optuna_study(method, evaluator, seed, trials, branches):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed += 1000 * len(evaluator.old)
    samplers = {"optuna-gp": lambda: optuna.samplers.GPSampler(seed=seed),
                "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed),
                "optuna-nsga2": lambda: optuna.samplers.NSGAIISampler(seed=seed, population_size=20)}
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=samplers[method]())
    space, asked = {p["key"]: distribution(p) for p in evaluator.space}, []
    lengths = [i for i, p in enumerate(evaluator.space) if p["steps"]]
    runs, held = 0, []

    def propose():
        trial = study.ask(fixed_distributions=space)
        asked.append(trial)
        return [natural(p, trial.params[p["key"]]) for p in evaluator.space], trial.params

    def told(params, score, cost, again):
        failed = score is None
        state = optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE
        values = None if failed else [score, math.log(cost)]
        if again:
            study.add_trial(optuna.trial.create_trial(state=state, values=values, params=params, distributions=space))
        else:
            study.tell(asked.pop(), values, state=state)
        if branches:
            tell_branches(params)

    def tell_branches(params):
        nonlocal runs
        runs += 1
        for x, score, cost in evaluator.branches():
            shorter = {evaluator.space[i]["key"]: param(evaluator.space[i], x[i]) for i in lengths}
            held.append(optuna.trial.create_trial(values=[score, math.log(cost)], params={**params, **shorter},
                                                  distributions=space))
        if runs >= 10:
            study.add_trials(held)
            held.clear()

    for _ in range(trials):
        evaluator.trial(propose, told)


# ---- Rustuna ----

def rustuna_study(evaluator, seed, trials):
    import rustuna
    study = rustuna.create_study(directions=["maximize", "minimize"], sampler=rustuna.samplers.TPESampler(seed=seed))
    evaluator.old.clear()

    def suggest(trial, p):
        d = distribution(p)
        if p["scale"] == "categorical":
            return trial.suggest_categorical(p["key"], list(d.choices))
        whole = p["int"] or p["scale"] == "pow2"
        return (trial.suggest_int if whole else trial.suggest_float)(p["key"], d.low, d.high, log=d.log)

    def propose():
        trial = study.ask()
        return [natural(p, suggest(trial, p)) for p in evaluator.space], trial.number

    def told(number, score, cost, again):
        if score is None:
            study.tell(number, state=rustuna.trial.TrialState.FAIL)
        else:
            study.tell(number, values=[score, math.log(cost)])

    for _ in range(trials):
        evaluator.trial(propose, told)


# ---- BoTorch ----

def from_unit(p, u):
    """gp/space.c's map from the unit cube."""
    u = min(max(u, 0.0), 1.0)
    if p["scale"] in ("pow2", "categorical") or p["int"]:
        lo, hi = pow2_range(p) if p["scale"] == "pow2" else (math.ceil(p["min"]), math.floor(p["max"]))
        if p["scale"] == "log":
            v = round((lo - 0.5) * math.exp(u * math.log((hi + 0.5) / (lo - 0.5))))
        else:
            v = lo + math.floor(u * (hi - lo + 1))
        v = min(max(v, lo), hi)
        return 2.0 ** v if p["scale"] == "pow2" else float(v)
    if p["scale"] == "log":
        return clip(p, p["min"] * math.exp(u * math.log(p["max"] / p["min"])))
    if p["scale"] == "logit":
        return clip(p, 1 / (1 + math.exp(-(logit(p["min"]) + u * (logit(p["max"]) - logit(p["min"]))))))
    return clip(p, p["min"] + u * (p["max"] - p["min"]))


def snapped(p, u):
    """u at the middle of its bin, for a discrete parameter."""
    if p["scale"] in ("pow2", "categorical") or (p["int"] and p["scale"] == "linear"):
        lo, hi = pow2_range(p) if p["scale"] == "pow2" else (math.ceil(p["min"]), math.floor(p["max"]))
        n = hi - lo + 1
        return (min(math.floor(u * n), n - 1) + 0.5) / n
    if p["int"]:
        lo, hi = p["min"] - 0.5, p["max"] + 0.5
        return math.log(from_unit(p, u) / lo) / math.log(hi / lo)
    return u


def botorch_study(evaluator, seed, trials):
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling.normal import SobolQMCNormalSampler
    from gpytorch.mlls import SumMarginalLogLikelihood
    torch.manual_seed(seed)
    space, dim = evaluator.space, len(evaluator.space)
    n_init, bounds = min(2 * dim, 10), torch.stack([torch.zeros(dim), torch.ones(dim)]).double()
    sobol, rows, values, ref = torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed), [], [], None
    n_asked = 0

    def propose():
        nonlocal ref
        if len(rows) < max(2, n_init // 2) or n_asked < n_init:
            u = sobol.draw(1)[0].double().tolist()
        else:
            x, y = torch.tensor(rows).double(), torch.tensor(values).double()
            if ref is None:
                low, high = y[:10].min(0).values, y[:10].max(0).values
                ref = low - 0.1 * (high - low)
            models = [SingleTaskGP(x, y[:, i:i + 1], outcome_transform=Standardize(1)) for i in range(2)]
            model = ModelListGP(*models)
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            acquisition = qLogNoisyExpectedHypervolumeImprovement(
                model, ref_point=ref.tolist(), X_baseline=x, prune_baseline=True,
                sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed * 10007 + n_asked))
            best, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512,
                                    options={"batch_limit": 10, "maxiter": 200})
            u = best[0].tolist()
        return [from_unit(p, v) for p, v in zip(space, u)], u

    def told(u, score, cost, again):
        nonlocal n_asked
        n_asked += 1
        if again and n_asked <= n_init:
            sobol.draw(1)
        if score is not None:
            rows.append([snapped(p, v) for p, v in zip(space, u)])
            values.append([score, -math.log(cost)])

    for _ in range(trials):
        evaluator.trial(propose, told)


# ---- many studies ----

def run_task(args, problem, method, seed, part, old):
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(1)
    evaluator = Evaluator(args, problem)
    evaluator.remember(part, old)
    evaluator.ask(f"study {method} {seed} {args.trials} {args.branches}")
    if method == "botorch":
        botorch_study(evaluator, seed, args.trials)
    elif method == "rustuna-tpe":
        rustuna_study(evaluator, seed, args.trials)
    else:
        optuna_study(method, evaluator, seed, args.trials, args.branches)
    line = evaluator.ask("end")
    evaluator.close()
    return line


def worker(args, tasks, lock, took):
    while True:
        task = tasks.get()
        if task is None:
            return
        problem, method, seed, old = task

        def part(trial):
            text = json.dumps({"problem": problem, "method": method, "seed": seed, **trial})
            with lock, open(args.out + ".part", "a", encoding="utf-8") as file:
                file.write(text + "\n")

        start, n_old = time.monotonic(), len(old)
        try:
            line = run_task(args, problem, method, seed, part, old)
        except Exception:
            print(f"{problem} {method} {seed} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            continue
        if n_old == 0:
            took[method] = time.monotonic() - start
        with lock, open(args.out, "a", encoding="utf-8") as file:
            file.write(line)


def begun_before(args):
    """Trials of unfinished studies by (problem, method, seed)."""
    begun = {}
    if os.path.exists(args.out + ".part"):
        with open(args.out + ".part", encoding="utf-8") as file:
            for line in file:
                trial = json.loads(line)
                begun.setdefault((trial["problem"], trial["method"], trial["seed"]), []).append(trial)
    return begun


def done_before(args):
    done = set()
    if os.path.exists(args.out):
        with open(args.out, encoding="utf-8") as file:
            for line in file:
                study = json.loads(line)
                if study["trials"] >= args.trials and study["parallel"] == 1:
                    done.add((study["problem"], study["method"], study["seed"]))
    return done


def seed_list(text):
    """6-19,0-5 as numbers, in that order."""
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def measure_unfinished(args):
    done = done_before(args)
    with open(args.unfinished, "w", encoding="utf-8") as file:
        for (problem, method, seed), trials in sorted(begun_before(args).items()):
            if (problem, method, seed) in done:
                continue
            evaluator = Evaluator(args, problem)
            evaluator.ask(f"study {method} {seed} {len(trials)} {args.branches}")
            for trial in trials:
                evaluator.point(trial["x"], trial["s"])
            file.write(evaluator.ask("end"))
            evaluator.close()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--data")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default="optuna-gp,optuna-tpe,optuna-nsga2")
    parser.add_argument("--seeds", type=seed_list, default=seed_list("0-19"), help="numbers and ranges, in this order")
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--branches", type=int, default=0, help="shorter runs that each run gives")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--bench", default="build/bench/trawl-bench")
    parser.add_argument("--fronts", default="bench/sweep/fronts.json")
    parser.add_argument("--unfinished")
    args = parser.parse_args()
    if args.unfinished:
        return measure_unfinished(args)
    deadline, done, begun = time.monotonic() + args.seconds, done_before(args), begun_before(args)
    context = multiprocessing.get_context("spawn")
    manager = context.Manager()
    tasks, lock, took, n = manager.Queue(), manager.Lock(), manager.dict(), 0
    left = [(problem, method, seed) for method in args.methods.split(",") for seed in args.seeds
            for problem in args.problems.split(",") if (problem, method, seed) not in done]
    for key in sorted(left, key=lambda k: -len(begun.get(k, []))):  # those that are nearly done first
        tasks.put((*key, begun.get(key, [])))
        n += 1
    for _ in range(args.processes):
        tasks.put(None)
    workers = [context.Process(target=worker, args=(args, tasks, lock, took)) for _ in range(args.processes)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(max(0.0, deadline - time.monotonic()) if math.isfinite(deadline) else None)
    with lock:  # no line is cut
        for w in workers:
            if w.is_alive():
                w.kill()  # its evaluator ends with the pipe
    now = len(done_before(args))
    trials = sum(map(len, begun_before(args).values()))
    print(f"{now - len(done)} of {n} studies done, {now} in {args.out}, {trials} trials in its .part; seconds a study: {dict(took)}")


if __name__ == "__main__":
    main()
