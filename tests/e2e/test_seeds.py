"""test_seeds.py - studies that train each configuration under several seeds (sweep.seeds) or on several games (sweep.envs): which
runs there are, what is shown of them, and that kills, other clients and single commands change nothing of it."""
import collections
import csv
import io
import json
import statistics

import asking
import tap
from tap import end, equal, n_done, run, show, start, wait_for, write

# The score rises with the cost n and falls with x; seeds scatter it by less than that.
PROGRAM = r"""
while [ $# -gt 1 ]; do case $1 in --x) x=$2 ;; --n) n=$2 ;; esac; shift 2; done
[ -n "$WAIT" ] && sleep $WAIT
awk -v x=$x -v n=$n -v seed=$TRAWL_SEED 'BEGIN { srand(seed); printf "TRAWL score=%.6f cost=%d\n", n - 20 * x + 0.1 * rand(), n }'
"""
CONFIG = """
[sweep]
command = sh train.sh {argv}
method = sobol
trials = %d
devices = cpu
runs_per_device = 2
confirm = 0
seeds = 3
""" + tap.space("""
x: type = float; min = 0; max = 1
n: type = int; min = 1; max = 9
""")


def configs(trials):
    """The trials of each configuration."""
    found = collections.defaultdict(list)
    for t in trials:
        found[json.dumps(t["params"])].append(t)
    return list(found.values())


def seeds_are_right(study):
    """Further seeds follow the first run, differ, and are not wasted on what a cheaper configuration beats clearly."""
    trials, n_beaten = study["trials"], 0
    for runs in configs(trials):
        assert 1 <= len(runs) <= 3 and len({t["seed"] for t in runs}) == len(runs), runs
        equal([t["origin"] for t in runs[1:]], ["seed"] * (len(runs) - 1))
        assert runs[0]["origin"] != "seed" and all(t["state"] == "done" for t in runs), runs
        for t in runs:
            equal((t["n_seeds"], round(t["seeds_mean"], 9)), (len(runs), round(statistics.mean(r["score"] for r in runs), 9)))
        equal([t["on_front"] for t in runs[1:]], [False] * (len(runs) - 1))  # the first run stands for its configuration
        beaten = [b for b in trials if b["number"] < runs[0]["number"] - 4 and b["finished_ms"] <= runs[0]["started_ms"]  # known, with enough others for a model
                  and b["cost_s"] <= runs[0]["cost_s"] and b["score"] > runs[0]["score"] + 5]
        n_beaten += len(beaten) > 0
        assert not beaten or len(runs) == 1, (runs, beaten[0])
    assert n_beaten > 0, trials
    few = [t["number"] for t in trials if t["on_front"] and t["n_seeds"] < 3]
    assert not few or few[0] >= len(trials) - 6, few  # the study's limit came before its further seeds


def test_configs_have_their_seeds_through_kills(folder):
    store = folder / "s.db"
    write(folder, "train.sh", PROGRAM)
    config = write(folder, "own.ini", CONFIG % 24)
    process = start("sweep", config, "--store", store, "--name", "a", "-q", env={**tap.os.environ, "WAIT": "0.05"})
    for n in (4, 11):
        wait_for(lambda: n_done(store) >= n, process)
        process.kill()
        process.communicate()
        process = start("sweep", "--resume", "a", "--store", store, "-q")
    end(process)
    study = show(store, "a")
    equal(len(study["trials"]), 24)
    assert 8 < len(configs(study["trials"])) < 20, study
    seeds_are_right(study)
    rows = list(csv.DictReader(io.StringIO(run("export", "a", "--store", store, "--format", "csv")[0])))
    equal([(int(r["n_seeds"]), float(r["seeds_mean"])) for r in rows], [(t["n_seeds"], t["seeds_mean"]) for t in study["trials"]])
    text = run("export", "a", "--store", store, "--pick", "best")[0]
    assert "(3 seeds, mean" in text and "unconfirmed" not in text, text
    run("rerun", "a", "--store", store, "--trial", next(t["number"] for t in study["trials"] if t["origin"] == "seed"))  # 0: equal
    run("report", "a", "--store", store, "-o", folder / "a.html")
    assert "3 seeds" in (folder / "a.html").read_text()
    equal(run("export", "a", "--store", store, "-o", folder / "a.csv")[0], "")
    run("import", folder / "a.csv", "--study", "b", "--config", config, "--store", folder / "new.db")
    again = show(folder / "new.db", "b")["trials"]
    equal([(t["score_mean"], t["n_seeds"], t["on_front"]) for t in again], [(t["score_mean"], t["n_seeds"], t["on_front"]) for t in study["trials"]])
    run("check", store)


def test_a_single_config_has_a_mean_before_there_is_a_model(folder):
    store = folder / "s.db"
    write(folder, "train.sh", PROGRAM)
    run("sweep", write(folder, "own.ini", CONFIG % 3), "--store", store, "--name", "a", "-q")
    study = show(store, "a")
    equal(len(configs(study["trials"])), 1 if study["trials"][0]["params"] == study["trials"][1]["params"] else 2)
    for runs in configs(study["trials"]):
        equal({t["n_seeds"] for t in runs}, {len(runs)})
        equal(len({t["seeds_mean"] for t in runs}), 1)


def test_clients_get_seeds_too(folder):
    text = asking.OUTSIDE.replace("confirm = 0", "confirm = 0\nseeds = 2")
    with asking.served(folder, text, trials=8) as (server, store):
        seeds = collections.defaultdict(set)
        for k in range(8):
            trial = server.ask("c%d" % (k % 2))
            seeds[trial["params"]["learning_rate"]].add(trial["seed"])
            server.tell(trial, score=trial["params"]["layers"] + 0.01 * k, cost=trial["params"]["layers"])
        equal(sorted(map(len, seeds.values()))[-1], 2)
        wait_for(lambda: all(t["state"] == "done" for t in show(store, "a")["trials"]))
        for runs in configs(show(store, "a")["trials"]):
            assert len(runs) <= 2 and {t["seed"] for t in runs} == seeds[runs[0]["params"]["param.learning_rate"]], (runs, seeds)


def test_wrong_numbers_of_seeds(folder):
    write(folder, "train.sh", PROGRAM)
    for value, says in (("0", "sweep.seeds"), ("101", "sweep.seeds"), ("two", "sweep.seeds")):
        config = write(folder, "own.ini", (CONFIG % 3).replace("seeds = 3", "seeds = " + value))
        tap.fails("sweep", config, "--store", folder / "s.db", "--name", "a", code=2, says=(says, "own.ini"))


# What is searched does nothing for 4,096 steps but scatter; squared and cartpole have few options in common.
GAMES = tap.TINY.replace("[env]\nname = squared\nn = 1\n", "") + """
[sweep]
envs = squared, cartpole
method = sobol
confirm = 0
seeds = 2
trials = 17
runs_per_device = 2
""" + tap.SPACE


def games_are_right(trials, names):
    for runs in configs(trials):
        of = [[t for t in runs if t["env"] == name] for name in names]
        equal(len({len(x) for x in of}), 1)  # as often on each game
        rounds = [statistics.mean(t["score"] for t in together) for together in zip(*of)]
        for t in runs:
            equal((t["n_seeds"], round(t["seeds_mean"], 9)), (len(rounds), round(statistics.mean(rounds), 9)))
        equal(sum(t["on_front"] for t in runs[1:]), 0)
        equal(len({t["seed"] for t in runs}), len(runs))


def test_each_config_is_trained_on_every_game(folder):
    store = folder / "s.db"
    config = write(folder, "games.ini", GAMES)
    process = start("sweep", config, "--store", store, "--name", "a", "-q")
    wait_for(lambda: n_done(store) >= 5, process)
    process.kill()
    process.communicate()
    run("sweep", "--resume", "a", "--store", store, "-q")
    trials = show(store, "a")["trials"]
    equal((len(trials), {t["state"] for t in trials}), (16, {"done"}))  # 17 would end with half a configuration
    games_are_right(trials, ("squared", "cartpole"))
    assert any(t["on_front"] for t in trials) and any(t["n_seeds"] == 2 for t in trials)
    best = run("export", "a", "--store", store, "--pick", "best", "-o", folder / "best.ini")[1]
    text = (folder / "best.ini").read_text()
    assert "; of the mean over squared, cartpole; this file is for squared" in text, (best, text)
    run("train", folder / "best.ini", "-q", cwd=folder)
    other = next(t["number"] for t in trials if t["env"] == "cartpole")
    assert "name = cartpole" in run("export", "a", "--store", store, "--pick", "trial=%d" % other)[0]
    run("rerun", "a", "--store", store, "--trial", other)  # 0: equal
    run("report", "a", "--store", store, "-o", folder / "a.html")
    run("export", "a", "--store", store, "--format", "optuna", "-o", folder / "optuna.db")
    for name in ("a.csv", "a.jsonl"):
        run("export", "a", "--store", store, "-o", folder / name)
        more = ["--config", config] if name == "a.csv" else []
        run("import", folder / name, "--study", name[:1] + name[2:3], *more, "--store", folder / "new.db")
        again = show(folder / "new.db", name[:1] + name[2:3])["trials"]
        equal([(t["env"], t["score"], t["score_mean"], t["on_front"]) for t in again], [(t["env"], t["score"], t["score_mean"], t["on_front"]) for t in trials])
    run("check", store)
    worst = min(trials, key=lambda t: t["n_seeds"])["number"]
    run("confirm", "a", worst, "--seeds", 1, "--store", store)  # on every game, beyond the limit of trials
    run("sweep", "--resume", "a", "--store", store, "-q")
    more = show(store, "a")["trials"]
    equal([(t["env"], t["origin"], t["params"] == trials[worst]["params"]) for t in more[16:18]], [("squared", "confirm", True), ("cartpole", "confirm", True)])
    games_are_right(more, ("squared", "cartpole"))
    run("rerun", "a", "--store", store, "--trial", 1, "--seeds", 2, "-q")  # two runs more of that game
    equal([(t["env"], t["origin"]) for t in show(store, "a")["trials"][len(more):]], [("cartpole", "added")] * 2)
    run("check", store)
    _, err = run("sweep", write(folder, "other.ini", GAMES.replace("cartpole", "memory")), "--from", "a", "--name", "b", "--store", store, "--trials", 4, "-q")
    assert "this study tries configs of its front once" in err, err  # other games


def test_programs_and_clients_get_the_game(folder):
    script = """[ "$1" = "$TRAWL_ENV" ] || exit 3
case $1 in one) echo TRAWL score=1 cost=1 ;; two) echo TRAWL score=0 cost=3 ;; *) exit 4 ;; esac
"""
    write(folder, "train.sh", script)
    config = write(folder, "own.ini", (CONFIG % 12).replace("{argv}", "{env} {argv}").replace("seeds = 3", "envs = one, two"))
    store = folder / "p.db"
    run("sweep", config, "--store", store, "--name", "a", "-q")
    trials = show(store, "a")["trials"]
    equal((len(trials), {t["state"] for t in trials}, {t["seeds_mean"] for t in trials}), (12, {"done"}, {0.5}))
    games_are_right(trials, ("one", "two"))
    assert round(trials[0]["cost_mean"], 3) == 2, trials[0]
    run("export", "a", "--store", store, "--pick", "trial=1", "-o", folder / "two.ini")
    equal(json.loads(run("train", folder / "two.ini", "--json", "-q", cwd=folder)[0])["score"], 0)
    with asking.served(folder, asking.OUTSIDE.replace("confirm = 0", "confirm = 0\nenvs = one, two"), trials=4) as (server, store):
        first, second = server.ask("a"), server.ask("b")
        equal((first["env"], second["env"], first["params"] == second["params"]), ("one", "two", True))
        server.tell(first, score=1, cost=1)
        server.tell(second, score=0.5, cost=1)
        status, answer = server.post("a/trials:add", {"params": first["params"], "score": 1, "cost": 1})
        assert status == 400 and "env is missing" in answer["error"] and answer["hint"].endswith("games are one, two"), answer
        equal(server.ok("a/trials:add", {"params": {**first["params"], "layers": 7}, "score": 0.2, "cost": 1, "env": "two"})["trial"], 2)
        third = server.ask("a")  # on the game that is missing
        equal((third["env"], third["params"]["layers"]), ("one", 7))
        server.tell(third, score=0.4, cost=1)
        wait_for(lambda: all(t["state"] == "done" for t in show(store, "a")["trials"]))
        equal([round(t["seeds_mean"], 9) for t in show(store, "a")["trials"]], [0.75, 0.75, 0.3, 0.3])


def test_wrong_games(folder):
    for old, new, *says in (("squared, cartpole", "squared", "one game, squared"), ("cartpole", "cartpol", "'cartpol' is not a game; did you mean 'cartpole'?"),
                            ("squared, cartpole", "squared, squared", "squared twice"), ("[sweep]", "[env]\nname = pong\n[sweep]", "env.name is pong"),
                            ("confirm = 0", "metric = score", "sweep.metric is score", "perf"), ("cartpole", "gym:CartPole-v1", "sweep.metric is perf"),
                            ("cartpole", "./my.so", "whole path"), ("[sweep.train.gamma]\nmin = 0.8\nmax = 0.99", "[sweep.env.n]\ndistribution = int\nmin = 1\nmax = 4", "env.n is an option of one game")):
        assert old in GAMES, old
        config = write(folder, "games.ini", GAMES.replace(old, new, 1))
        tap.fails("sweep", config, "--store", folder / "s.db", "--name", "a", code=2, says=says)
    write(folder, "train.sh", "echo TRAWL score=1")
    config = write(folder, "own.ini", (CONFIG % 4).replace("{argv}", "{env} {argv}"))
    tap.fails("sweep", config, "--store", folder / "s.db", "--name", "a", code=2, says="{env} is not a parameter")
