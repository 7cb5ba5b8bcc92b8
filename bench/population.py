#!/usr/bin/env python3
"""population.py - trials a second of a sweep of small trainings on a GPU, beside agents of rejax trained in one `vmap`.

usage: bench/population.py sweep TRAWL CONFIG... [--lanes 1,8,64] [--seconds S] [--out CSV] [--device auto]
       bench/population.py rejax [--agents N] [--steps N] [--envs N] [--hidden N] [--repeats N] [--out CSV]

sweep  `trawl sweep --runs-per-device LANES` (with 16 and more lanes also --train.population true) proposes learning rates and gammas, and
       what CONFIG itself searches, at random for S seconds. Trials a second are those that ended after the first second of the first trial, over the time until the
       last one's end; from_start_per_s counts all, from the start of the process.
rejax  trains N CartPole agents of PPO in one call, with the games, net, minibatches and passes of examples/cartpole.ini; compiled first,
       then run --repeats times. perf is the return of 128 episodes over 500. Ran with jax 0.11.2, rejax 0.1.3, gymnax 0.0.9 (1.0 returns
       more values from a step than rejax takes), distrax 0.1.9 and tfp-nightly 0.26.0.dev20261027 (the stable one does not import).
"""
import os
import statistics
import sys
import tempfile
import time

import measure

SPACE = """[sweep]
method = random
metric = perf
[sweep.train.learning_rate]
distribution = log
min = 0.005
max = 0.03
[sweep.train.gamma]
distribution = logit
min = 0.97
max = 0.998
"""


def sweep(a):
    rows = []
    for config in a.words:
        for lanes in map(int, a.lanes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                space, store = os.path.join(folder, "space.ini"), os.path.join(folder, "runs.db")
                with open(space, "w", encoding="utf-8") as out:
                    out.write(SPACE)
                more = ["--train.population", "true"] if lanes >= 16 else []
                begin_ms = 1e3 * time.time()
                trials = measure.sweep(a.trawl, config, store, "s", space, "--wall-time", f"{a.seconds}s", "--train.device", a.device,
                                       "--runs-per-device", str(lanes), *more)
            done = [t for t in trials if t["state"] == "done"]
            ends = sorted(t["finished_ms"] for t in done)
            first_ms = min((t["started_ms"] for t in done), default=0) + 1000
            counted = [end for end in ends if end > first_ms]
            rows.append({"config": os.path.basename(config), "lanes": lanes, "population": bool(more), "trials": len(done),
                         "trials_per_s": 1e3 * len(counted) / (counted[-1] - first_ms) if counted else None,
                         "from_start_per_s": 1e3 * len(ends) / (ends[-1] - begin_ms) if ends else None,
                         "perf_median": statistics.median(t["perf"] for t in done) if done else None,
                         "cost_s_median": statistics.median(t["cost_s"] for t in done) if done else None,
                         "other_states": " ".join(sorted({f"{t['state']}:{t['reason']}" for t in trials if t["state"] not in ("done", "running", "queued")}))})
            print(measure.result_table.line(rows[-1]), flush=True)
            if a.out:
                measure.result_table.write(a.out, measure.place(a.trawl), rows)


def rejax(a):
    begin_s = time.monotonic()
    import jax  # pylint: disable=import-outside-toplevel
    from rejax import PPO  # pylint: disable=import-outside-toplevel

    algo = PPO.create(env="CartPole-v1", agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (a.hidden, a.hidden)}, total_timesteps=a.steps, num_envs=a.envs, num_steps=32, num_epochs=4,
                      num_minibatches=max(1, a.envs * 32 // 512), learning_rate=1e-3, max_grad_norm=0.5, gamma=0.99, eval_freq=a.steps,
                      skip_initial_evaluation=True)
    keys = jax.random.split(jax.random.PRNGKey(0), a.agents)
    train = jax.jit(jax.vmap(algo.train)).lower(keys).compile()
    ready_s = time.monotonic() - begin_s
    rows = []
    for repeat in range(a.repeats):
        from_s = time.monotonic()
        _, (_, returns) = jax.block_until_ready(train(keys))
        seconds = time.monotonic() - from_s
        perfs = [float(x) / 500 for x in returns[:, -1].mean(axis=-1)]
        rows.append({"agents": a.agents, "steps": a.steps, "envs": a.envs, "start_and_compile_s": ready_s, "seconds": seconds,
                     "agents_per_s": a.agents / seconds, "from_start_per_s": a.agents / (ready_s + seconds),
                     "perf_mean": statistics.fmean(perfs), "perf_median": statistics.median(perfs),
                     "at_95_percent": 100 * sum(p >= 0.95 for p in perfs) / len(perfs)})
        print(f"repeat {repeat}: {measure.result_table.line(rows[-1])}", flush=True)
        if a.out:
            measure.result_table.write(a.out, f"rejax on {jax.devices()[0].device_kind}, jax {jax.__version__}; {' '.join(sys.argv[1:])}", rows)


def main():
    p = measure.parser(__doc__, program=False)
    p.add_argument("what", choices=["sweep", "rejax"])
    p.add_argument("words", nargs="*", help="sweep: the program, then configs")
    p.add_argument("--lanes", default="1,8,64")
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--device", default="auto")
    p.add_argument("--agents", type=int, default=2048)
    p.add_argument("--steps", type=int, default=500000)
    p.add_argument("--envs", type=int, default=64)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--repeats", type=int, default=2)
    p.add_argument("--out", help="CSV file")
    a = p.parse_intermixed_args()
    if a.what == "rejax":
        rejax(a)
    elif len(a.words) < 2:
        p.error("sweep needs the program and a config")
    else:
        a.trawl, *a.words = a.words
        a.trawl = os.path.abspath(a.trawl)
        sweep(a)


if __name__ == "__main__":
    main()
