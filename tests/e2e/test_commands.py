"""Every command on a tiny config, through the files and numbers that it leaves."""
import csv
import io
import json
import os
import re
import resource
import signal

from tap import TINY, TINY_SWEEP, equal, fails, run, show, write

RESULT_KEYS = {"score", "perf", "env_steps", "cost_s", "steps_per_s"}


def sweep(folder, trials=4, *more):
    config = write(folder, "sweep.ini", TINY_SWEEP)
    store = folder / "s.db"
    run("sweep", config, "--store", store, "--name", "a", "--trials", trials, "--seed", 3, *more)
    return store


def test_help_of_every_command(folder):
    out, _ = run("--help")
    names = [line.split()[0] for line in out.split("commands:\n")[1].split("\n\n")[0].splitlines()]
    assert {"train", "sweep", "backup"} <= set(names) and len(names) > 35, names
    for name in names:
        text, _ = run(name, "--help")
        for word in ("usage: trawl %s" % name, "examples:", "--help"):
            assert word in text, "%s --help has no %r" % (name, word)
        assert text[text.index("examples:"):].count("trawl %s" % name) >= 2, "two examples of %s" % name
        for line in re.findall("^  trawl .*", text[text.index("examples:"):], re.M):
            assert not re.search(r"\S  +[^# ]", line), "%s --help: a shell would take the remark as words: %r" % (name, line)
    out, _ = run("--version")
    assert out.startswith("trawl ") and "(" in out
    fails(code=2, says="--help")


def test_help_shows_the_options_of_the_config(folder):
    out, _ = run("train", "cartpole", "--help")
    for word in ("--train.learning-rate", "--policy.hidden-size", "--env.max-steps"):
        assert word in out, word


def test_unknown_command_and_option_name_the_nearest(folder):
    fails("trian", code=2, says="'train'")
    fails("zzzzzz", code=2, says="--help")
    fails("ls", "--stroe", "x", code=2, says="'--store'")
    fails("show", code=2, says="missing")
    fails("show", "a", "b", code=2, says="'b'")
    fails("ls", "--store", code=2, says="needs a value")
    fails("sweep", "x.ini", "--name", "a", "--trials", "-3", code=2, says="--trials")
    fails("sweep", "x.ini", "--name", "a", "--budget", "soon", code=2, says="2h")


def test_train_prints_one_object(folder):
    out, err = run("train", write(folder, "t.ini", TINY), "--json")
    result = json.loads(out)
    assert RESULT_KEYS <= set(result), result
    equal(result["env_steps"], 4096)
    assert 0 <= result["perf"] <= 1 and result["cost_s"] > 0
    assert abs(sum(p["percent"] for p in result["profile"].values()) - 100) < 1e-6
    assert err.startswith("training squared on ")
    start = result["start"]
    assert {"process_s", "config_s", "driver_s", "trainer_s", "reports_s"} <= set(start) and min(start.values()) >= 0, start
    assert abs(sum(start.values()) - result["start_s"]) < 1e-9, result
    assert 0 < result["first_s"] <= result["cost_s"] and result["recording_s"] >= 0, result


def test_command_line_beats_file_beats_game(folder):
    config = write(folder, "t.ini", TINY)
    equal(json.loads(run("train", config, "--json", "--train.total-timesteps", "2k", "-q")[0])["env_steps"], 2000)
    equal(json.loads(run("train", config, "--json", "--train.total_timesteps=1024", "-q")[0])["env_steps"], 1024)


def test_one_game_has_no_standard_error(folder):
    snake = folder / "snake.ckpt"
    run("train", "snake", "-o", snake, "-q", "--train.total_agents", 16, "--train.horizon", 16, "--train.minibatch_size", 256,
        "--train.total_timesteps", 256, "--train.eval_episodes", 16, "--train.eval_max_steps", 16)
    for agents, known in ((16, False), (32, True)):  # sixteen play in one game
        words = ("eval", snake, "-n", agents, "--max-steps", 512)
        result = json.loads(run(*words, "--json")[0])
        equal([result[key] is not None for key in ("score_se", "perf_se", "ep_return_se")], [known] * 3)
        out = run(*words)[0]
        equal(("+-" in out, "mean and standard error of" in out), (known, known))


def test_checkpoint_resume_goes_on_to_the_same_end(folder):
    config = write(folder, "t.ini", TINY)
    whole, half = folder / "whole.ckpt", folder / "half.ckpt"
    run("train", config, "-o", whole, "-q", "--train.anneal_lr", "false")
    run("train", config, "-o", half, "-q", "--train.anneal_lr", "false", "--train.total_timesteps", 2048)
    out, _ = run("train", "--resume", half, "-q", "--json", "--train.total_timesteps", 4096)
    equal(json.loads(out)["env_steps"], 4096)
    a = json.loads(run("eval", whole, "--json", "--episodes", 64)[0])
    assert a["score_se"] > 0 and "score %.6g +- %.2g  perf" % (a["score"], a["score_se"]) in run("eval", whole, "--episodes", 64)[0]
    b = json.loads(run("eval", half, "--json", "--episodes", 64)[0])
    for result in (a, b):
        result.pop("checkpoint"), result.pop("eval_s")
    equal(a, b)
    assert a["episodes"] >= 64
    fails("train", config, "--resume", half, code=2, says="not both")


def test_a_failed_save_costs_no_result(folder):
    """The disk is full at the last save: no file can grow beyond 64 bytes."""
    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    words = ("train", write(folder, "t.ini", TINY), "-o", folder / "t.ckpt")
    out, err = run(*words, "-q", "--json", code=1, preexec_fn=full)
    result = json.loads(out)
    assert result["perf"] > 0 and result["checkpoint"] is None and result["env_steps"] == 4096, result
    assert "the result is printed, but the checkpoint could not be saved" in err and "t.ckpt" in err, err
    equal(sorted(p.name for p in folder.iterdir()), ["t.ini"])
    run(*words, "-q")
    before = (folder / "t.ckpt").read_bytes()
    out, err = run(*words, "-q", code=1, preexec_fn=full)
    assert "steps/s" in out and "`trawl eval" not in out and "what the file had before is kept" in err, (out, err)
    equal((folder / "t.ckpt").read_bytes(), before)


def test_sweep_then_ls_and_show(folder):
    store = sweep(folder, 5)
    rows = json.loads(run("ls", "--store", store, "--json")[0])
    equal([(r["name"], r["trials"], r["counts"]["done"], r["metric"]) for r in rows], [("a", 5, 5, "perf")])
    study = show(store, "a")
    equal([t["number"] for t in study["trials"]], [0, 1, 2, 3, 4])
    keys = {"number", "state", "params", "score", "cost_s", "env_steps", "seed", "reason", "on_front"}
    for t in study["trials"]:
        assert keys <= set(t), t
        equal(t["state"], "done")
        equal(set(t["params"]), {"train.learning_rate", "train.gamma", "policy.hidden_size"})
        assert 0.001 <= t["params"]["train.learning_rate"] <= 0.1 and t["params"]["policy.hidden_size"] in (4, 8, 16)
        assert t["reason"] is None and t["env_steps"] == 4096 and t["cost_s"] > 0
    equal(len({t["seed"] for t in study["trials"]}), 5)
    done = study["trials"]
    believed = [t for t in done if t["n_seeds"] and t["on_front"]]
    assert believed, done
    for t in believed:  # nothing that is expected is both cheaper and better
        assert t["score_lo"] <= t["score_mean"] <= t["score_hi"], t
        assert not [o for o in believed if o["cost_mean"] < t["cost_mean"] and o["score_mean"] > t["score_mean"]], believed
    out, _ = run("show", "a", "--store", store)
    assert "study a" in out and out.count("done") == 5
    assert "trawl export" in run("sweep", "--resume", "a", "--store", store)[0]


def test_minimize_turns_the_front_round(folder):
    store = sweep(folder, 5, "--sweep.goal", "minimize", "--sweep.metric", "ep_length")
    study = show(store, "a")
    equal(study["study"]["direction"], "minimize")
    equal(study["study"]["best_run_score"], min(t["score"] for t in study["trials"]))
    best = study["trials"][study["study"]["best"]]
    assert best["on_front"] and best["score_lo"] <= best["score_mean"] <= best["score_hi"], best
    equal(study["study"]["best_score"], best["score_mean"])
    worst = max(t["score"] for t in study["trials"])
    assert study["study"]["reference"]["score"] >= worst  # in the metric's own sign


def test_export_trains_to_the_same_score(folder):
    store = sweep(folder)
    best = max(show(store, "a")["trials"], key=lambda t: t["score"])
    ini = folder / "best.ini"
    run("export", "a", "--store", store, "--pick", "best-run", "-o", ini)
    equal(run("export", "a", "--store", store, "--pick", "best-run", "-o", "-", cwd=folder)[0], ini.read_text())
    assert not (folder / "-").exists()
    head = ini.read_text().split("\n[")[0]
    for word in ("trial %d" % best["number"], "study a", "seed %d" % best["seed"], "cost "):
        assert word in head, (word, head)
    equal(json.loads(run("train", ini, "--json", "-q")[0])["perf"], best["score"])
    args = run("export", "a", "--store", store, "--pick", "best-run", "--format", "args")[0].split()
    equal(args[:2], ["trawl", "train"])
    equal(json.loads(run(*args[1:], "--json", "-q")[0])["perf"], best["score"])
    data = json.loads(run("export", "a", "--store", store, "--pick", "best-run", "--format", "json")[0])
    equal((data["trial"], data["config"]["train"]["seed"]), (best["number"], best["seed"]))


def numbers(text):
    """'0.91, 95 % 0.87 to 0.94 (4 seeds, mean 0.9)' -> score, lo, hi, seeds."""
    found = re.search(r"(\S+), 95 % (\S+) to (\S+) \((?:(\d+) seeds, mean \S+|seen once)\)", text)
    assert found, text
    return [float(v) for v in found.groups()[:3]] + [int(found.group(4) or 1)]


def test_advice_is_the_same_everywhere(folder):
    """Summary, ls, show, export and the reports name the same best with the same promise."""
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    summary, lines = run("sweep", config, "--store", store, "--name", "a", "--trials", 20)
    study = show(store, "a")
    best = study["trials"][study["study"]["best"]]
    want = [best["score_mean"], best["score_lo"], best["score_hi"], best["n_seeds"]]

    def same(text):
        assert all(abs(a - b) <= 6e-4 * max(1, abs(b)) for a, b in zip(numbers(text), want)), (text, want)

    same(next(line for line in summary.splitlines() if line.startswith("  best ")))
    same(next(line for line in run("show", "a", "--store", store)[0].splitlines() if line.startswith("Take trial")))
    same(run("export", "a", "--store", store)[0].split("\n[")[0])
    same(run("export", "a", "--store", store, "-o", folder / "b.ini")[1])
    row = json.loads(run("ls", "--store", store, "--json")[0])[0]
    equal([row["best_trial"], row["best_score"], row["best_lo"], row["best_hi"], row["best_seeds"]], [best["number"]] + want)
    data = json.loads(run("export", "a", "--store", store, "--format", "json")[0])
    equal([data["trial"], data["score_mean"], data["score_lo"], data["score_hi"], data["n_seeds"]], [best["number"]] + want)
    table = list(csv.DictReader(io.StringIO(run("report", "a", "--store", store, "--format", "csv")[0])))[best["number"]]
    equal([float(table[k]) for k in ("score_mean", "score_lo", "score_hi")] + [int(table["n_seeds"])], want)
    html = run("report", "a", "--store", store)[0]
    assert "Take trial %d, expected perf" % best["number"] in html
    same(html.split("Take trial")[1])
    assert all(0 <= t[k] <= 1 for t in study["trials"] for k in ("score_mean", "score_lo", "score_hi")), "perf is 0 to 1"


def test_advice_is_confirmed(folder):
    """A fifth of the trials runs advice again under fresh seeds; with sweep.confirm 0 none does, and a message states it."""
    store = sweep(folder, 20)
    trials = show(store, "a")["trials"]
    confirming = [t for t in trials if t["origin"] == "confirm"]
    equal(len(confirming), 4)
    for t in confirming:
        first = next(o for o in trials if o["params"] == t["params"])
        assert first["number"] < t["number"] and first["seed"] != t["seed"], (first, t)
    data = json.loads(run("export", "a", "--store", store, "--format", "json")[0])
    runs = [t["score"] for t in trials if t["params"] == trials[data["trial"]]["params"]]
    equal(data["n_seeds"], len(runs))
    equal("unconfirmed" in run("export", "a", "--store", store)[0], len(runs) < 2)
    run("sweep", write(folder, "n.ini", TINY_SWEEP), "--store", store, "--name", "b", "--trials", 20, "-q", "--sweep.confirm", 0)
    assert not [t for t in show(store, "b")["trials"] if t["origin"] == "confirm"]
    text = run("export", "b", "--store", store)[0]
    trial = json.loads(run("export", "b", "--store", store, "--format", "json")[0])["trial"]
    assert "unconfirmed, seen once: `trawl rerun b --store %s --trial %d --seeds 5`" % (store.resolve(), trial) in text, text
    assert "seen once" in run("ls", "--store", store)[0] and "seen once" in run("report", "b", "--store", store)[0]


def test_export_picks(folder):
    store = sweep(folder, 6)
    trials = show(store, "a")["trials"]

    def picked(rule):
        return json.loads(run("export", "a", "--store", store, "--format", "json", "--pick", rule)[0])["trial"]

    cheapest = min(trials, key=lambda t: t["cost_s"])
    limit = max(cheapest["cost_s"], cheapest["cost_mean"])
    within = trials[picked("cost<=%r" % limit)]
    assert within["cost_s"] <= limit and within["cost_mean"] <= limit, (within, limit)
    best = max(t["score"] for t in trials)
    sure = sorted((t for t in trials), key=lambda t: t["score_lo"])[len(trials) // 2]
    equal(picked("score>=%r" % sure["score_lo"]),
          min((t for t in trials if t["score_lo"] >= sure["score_lo"]), key=lambda t: (t["cost_mean"], t["number"]))["number"])
    fails("export", "a", "--store", store, "--pick", "score>=%r" % (best + 1), code=1, says="--pick best")
    equal(picked("trial=2"), 2)
    equal(picked("best"), show(store, "a")["insight"]["recommended"])
    equal(trials[picked("best-run")]["score"], best)
    fails("export", "a", "--store", store, "--pick", "trial=2s", code=2, says="trial=2s")
    fails("export", "a", "--store", store, "--pick", "trial=99", code=1, says="no trial 99")
    knee = show(store, "a")["study"]["knee"]
    if knee is None:
        equal(picked("knee"), picked("best"))
        assert "no bend" in run("export", "a", "--store", store, "--pick", "knee")[0]
    else:
        equal(picked("knee"), knee)
    fails("export", "a", "--store", store, "--pick", "cost<=1e-9", code=1, says="no finished trial")
    fails("export", "a", "--store", store, "--pick", "trial=99", code=1, says="0 to 5")
    fails("export", "a", "--store", store, "--pick", "nicest", code=2, says="knee")


def test_report_in_every_format(folder):
    store = sweep(folder)
    for suffix in ("html", "svg", "csv", "json"):
        run("report", "a", "--store", store, "-o", folder / ("r." + suffix))
    html = (folder / "r.html").read_text()
    assert "<svg" in html and "<script" not in html and "http://" not in html.replace("http://www.w3.org", "")
    assert (folder / "r.svg").read_text().lstrip().startswith(("<svg", "<?xml"))
    rows = list(csv.reader(io.StringIO((folder / "r.csv").read_text())))
    equal(len(rows), 5)
    json.loads((folder / "r.json").read_text())
    out, _ = run("report", "a", "--store", store, "--format", "csv")
    equal(out, (folder / "r.csv").read_text())
    assert run("report", "a", "--store", store, "-o", "-", "--format", "csv", cwd=folder)[0].startswith("number,")
    assert not (folder / "-").exists()
    fails("report", "a", "--store", store, "-o", folder / "r.docx", code=2, says="--format")


def test_figures_for_a_paper(folder):
    all_points = ("--train.log_interval_s", 0)  # a point for each iteration, however fast they are
    store = sweep(folder, 4, *all_points)

    def again(name, seed, *more):
        run("sweep", folder / "sweep.ini", "--store", store, "--name", name, "--trials", 4, "--seed", seed, *all_points, *more)

    def figure(*args):
        return run("report", *args, "--store", store)[0]

    def refused(*args, says, code=2):
        fails("report", *args, "--store", store, code=code, says=says)

    again("b", 4)
    again("c", 5)
    curves = figure("a", "--figure", "curves", "--width", "84mm")
    assert 'width="238.1pt"' in curves and ">env steps<" in curves and "#" in curves
    assert ">training time in seconds<" in figure("a", "--figure", "curves", "--over", "seconds")
    assert "half of 3 seeds" in figure("a", "b", "c", "--figure", "attainment")
    run("report", "a", "--store", store, "--figure", "front", "-o", folder / "front.tex")
    assert (folder / "front.tex").read_text().count("\\begin{tabular}") == 2
    refused("a", "--figure", "attainment", says="two studies or more")
    refused("a", "a", "--figure", "attainment", says="of an earlier study in the list")
    again("d", 6, "--sweep.train.gamma.max", "0.95")
    refused("a", "d", "--figure", "attainment", says="differ in sweep.train.gamma")
    refused("a", "b", "--figure", "front", says="one study")
    refused("a", "b", says="trawl compare")
    refused("a", "--figure", "pie", says="parallel")
    refused("a", "--figure", "front", "--width", "3.3", says="3.3in")
    refused("a", "--figure", "front", "--width", "3in", "--over", "seconds", says="curves")
    refused("a", "--figure", "front", "--width", "9cm", "--format", "csv", says="svg, pdf or png")
    refused("a", "--figure", "curves", "--width", "99in", says="20in")
    refused("a", "--width", "3in", says="--figure")
    refused("a", "--format", "tex", says="--figure front")


def test_envs_and_doctor(folder):
    envs = {e["name"]: e for e in json.loads(run("envs", "--json")[0])}
    assert {"breakout", "pong", "cartpole", "squared", "memory"} <= set(envs)
    equal((envs["cartpole"]["obs_size"], envs["cartpole"]["actions"]), (4, [2]))
    equal((envs["breakout"]["obs_size"], envs["breakout"]["actions"]), (118, [3]))
    assert "frameskip" in run("envs", "breakout")[0]
    fails("envs", "brekout", code=2, says="'breakout'")
    data = json.loads(run("doctor", "--json", "--store", folder / "s.db")[0])
    assert data["usable_cores"] >= 1 and data["store_ok"] and "cuda" in data and "train.devices" in data["nccl"], data
    late = {"librsvg": "librsvg-2.so.2", "libcairo": "libcairo.so.2", "libcurl": "libcurl.so.4", "libpq": "libpq.so.5",
            "libmicrohttpd": "libmicrohttpd.so.12"}
    for file in late.values():  # in front of the real ones
        write(folder, file, "no library")
    missing = json.loads(run("doctor", "--json", "--store", folder / "s.db", env={**os.environ, "LD_LIBRARY_PATH": str(folder)})[0])
    for key, file in late.items():
        if data[key].startswith("found"):  # the build has it
            assert missing[key].startswith("missing, and with it ") and f"{file} cannot be opened" in missing[key], missing[key]
            assert "install the package " in missing[key]
    fails("doctor", "--store", folder / "no" / "s.db", code=1, says="cannot write")
    (folder / "text.db").write_text("this is not a store\n" * 100)
    fails("doctor", "--store", folder / "text.db", code=1, says="text.db")


def test_bench(folder):
    data = json.loads(run("bench", "env", "cartpole", "--json", "--seconds", "0.05", "--repeats", 3)[0])
    assert data["steps_per_s"] > 0 and data["steps_per_s_per_core"] > 0 and data["steps_per_s_min"] <= data["steps_per_s"]
    data = json.loads(run("bench", "train", write(folder, "t.ini", TINY), "--json", "--seconds", "0.05", "--repeats", 3)[0])
    assert data["steps_per_s"] > 0 and data["commit"] and data["device"] and data["sgemm_share"] > 0
    assert abs(sum(p["percent"] for p in data["profile"].values()) - 100) < 1e-6
    run("bench", "train", folder / "t.ini", "--seconds", "0.02", "--repeats", 1, "--train.total_timesteps", 1)  # by time
    fails("bench", "train", code=2, says="missing")
    fails("bench", "nothing", "cartpole", code=2, says="'nothing'")
