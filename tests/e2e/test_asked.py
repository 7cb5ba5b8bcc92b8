"""test_asked.py - a sweep runs what its config asks for: steps, the search space, and trials of other studies."""
import json
import pathlib
import re
import shlex

from tap import TINY, equal, fails, run, show, write

PUFFER4 = pathlib.Path(__file__).parent.parent / "study" / "dialect" / "puffer" / "default4.ini"


def test_less_than_a_rollout_is_refused(folder):
    message = fails("train", write(folder, "t.ini", TINY), "--train.total_timesteps", 255, code=2, says="train.total_timesteps 255")
    for text in ("train.total_agents 16", "train.horizon 16", "lower", "raise"):
        assert text in message, message


def test_a_run_that_ended_short_is_at_its_end(folder):
    checkpoint = folder / "a.ckpt"
    run("train", write(folder, "t.ini", TINY), "-q", "-o", checkpoint, "--train.total_timesteps", 1000)
    _, err = run("train", "--resume", checkpoint, "-q", "--train.total_timesteps", 1007)
    assert "at its end" in err, err
    out, _ = run("train", "--resume", checkpoint, "-q", "--json", "--train.total_timesteps", 2000)
    equal(json.loads(out)["env_steps"], 2000)


def sweep(folder, text, name="a", trials=8, more=()):
    """The study's trials after a sweep of this config, and stderr."""
    config = write(folder, name + ".ini", text)
    _, err = run("sweep", config, "--store", folder / "s.db", "--name", name, "--trials", trials, "-q", *more)
    return show(folder / "s.db", name)["trials"], err


def searched(folder, name="a"):
    return {p["key"]: p for p in show(folder / "s.db", name)["study"]["space"]["params"]}


def test_no_impossible_trial_is_proposed(folder):
    # PufferLib 4.0's own space with a small net and short runs: 13 of 14 of its points cannot be run, as they have more samples
    # in a minibatch than in a rollout, or fewer steps than a rollout has
    text = re.sub(r"\[sweep\.policy\.\w+\]\n(.+\n)+", "", PUFFER4.read_text())
    for old, new in (("env_name = None", "env_name = squared"), ("hidden_size = 128", "hidden_size = 16"), ("num_layers = 4", "num_layers = 1"),
                     ("min = 3e7\nmax = 1e11", "min = 1e4\nmax = 1e5")):
        equal(text.count(old), 1)
        text = text.replace(old, new)
    trials, _ = sweep(folder, text, trials=24)
    equal({t["state"] for t in trials}, {"done"})
    for t in trials:
        p = t["params"]
        assert p["train.total_timesteps"] - p["train.total_agents"] < t["env_steps"] <= p["train.total_timesteps"], t
        assert p["train.minibatch_size"] <= p["train.total_agents"] * p["train.horizon"] <= t["env_steps"], t


def test_usual_ranges_follow_the_config(folder):
    text = TINY + "[sweep.train.minibatch_size]\n[sweep.train.total_timesteps]\n[sweep.train.learning_rate]\n"
    trials, _ = sweep(folder, text, trials=12)
    equal({t["state"] for t in trials}, {"done"})
    space = searched(folder)
    equal([space["train.minibatch_size"][k] for k in ("min", "max")], [32, 256])  # a rollout is 256
    equal([space["train.total_timesteps"][k] for k in ("min", "max")], [512, 32768])
    shown = [line for line in run("show", "a", "--store", folder / "s.db")[0].splitlines() if " total_timesteps " in line]
    equal([line.split(" total_timesteps ")[1].split()[0] for line in shown], [str(t["env_steps"]) for t in trials])  # what ran
    assert any(t["env_steps"] != t["params"]["train.total_timesteps"] for t in trials), trials
    equal(trials[0]["origin"], "default")
    equal(trials[0]["params"], {"train.minibatch_size": 256, "train.total_timesteps": 4096, "train.learning_rate": 0.015})


def test_the_first_trial_is_the_config_or_is_not_called_so(folder):
    sections = "[sweep.policy.hidden_size]\nmin = 4\nmax = 64\n[sweep.train.gamma]\n"
    odd = TINY.replace("hidden_size = 8", "hidden_size = 12")  # no power of two
    trials, _ = sweep(folder, odd + sections, "odd", trials=1)
    equal((trials[0]["origin"], trials[0]["params"]), ("default", {"policy.hidden_size": 12, "train.gamma": 0.99}))
    trials, err = sweep(folder, TINY.replace("hidden_size = 8", "hidden_size = 128") + sections, "out", trials=2)
    assert "policy.hidden_size = 128 lies outside the range searched, 4 to 64" in err, err
    assert all(t["origin"] != "default" for t in trials), trials
    trials, _ = sweep(folder, TINY + sections + "mean = 0.9\n", "mean", trials=1)
    equal((trials[0]["origin"], trials[0]["params"]["train.gamma"]), ("start", 0.9))


INERT = TINY.replace("threads = 1", "threads = 1\nvtrace = false") + """
[sweep.train.beta2]
[sweep.train.eps]
[sweep.train.rho_clip]
[sweep.train.prio_beta0]
[sweep.policy.conv_channels]
"""


def test_options_without_effect_are_not_searched(folder):
    message = fails("sweep", write(folder, "s.ini", INERT), "--store", folder / "s.db", "--name", "a", code=2,
                    says="nothing is left to search")
    assert not (folder / "s.db").exists()
    _, err = sweep(folder, INERT + "[sweep.train.gamma]\n", trials=2)
    lines = [line for line in err.splitlines() if "no effect" in line]
    equal(len(lines), 1)
    for text in ("train.beta2 (needs train.optimizer = adam, which is muon)", "train.eps", "train.rho_clip", "train.prio_beta0",
                 "policy.conv_channels (needs policy.encoder = conv, which is linear)"):
        assert text in message and text in lines[0], (text, message, lines)
    equal(list(searched(folder)), ["train.gamma"])


def test_an_option_is_searched_where_it_has_an_effect(folder):
    text = TINY + "[sweep]\nmethod = random\n[sweep.train.optimizer]\n[sweep.train.beta2]\n[sweep.train.gamma]\n"
    trials, err = sweep(folder, text, trials=12)
    assert "no effect" not in err, err
    equal(searched(folder)["train.beta2"]["when"], {"key": "train.optimizer", "choices": ["adam"]})
    values = {optimizer: {t["params"]["train.beta2"] for t in trials if t["params"]["train.optimizer"] == optimizer}
              for optimizer in ("adam", "muon")}
    equal(values["muon"], {0.999})  # the config's own
    assert len(values["adam"]) > 2, values
    lines = [line for line in run("show", "a", "--store", folder / "s.db")[0].splitlines() if " optimizer " in line]
    equal(len(lines), 12)
    for line in lines:
        assert ("optimizer muon" in line) == ("beta2 -" in line), line


def test_equal_bounds_keep_a_value(folder):
    text = TINY + "[sweep.train.gamma]\nmin = 0.9\nmax = 0.9\n[sweep.train.optimizer]\nvalues = adam\n[sweep.train.learning_rate]\n"
    trials, err = sweep(folder, text, trials=3)
    assert "train.gamma is not searched, it is 0.9 in all trials" in err, err
    equal(list(searched(folder)), ["train.learning_rate"])
    config = run("export", "a", "--store", folder / "s.db", "--pick", "best-run")[0]
    assert "gamma = 0.9\n" in config and "optimizer = adam" in config, config
    run("sweep", folder / "a.ini", "--resume", "a", "--store", folder / "s.db", "--trials", 4, "-q")


TWO = TINY + "[sweep]\nmethod = random\n[sweep.train.learning_rate]\nmin = 0.01\nmax = 0.05\n[sweep.train.optimizer]\nvalues = adam\n"
TWO_CHOICES = TWO.replace("values = adam\n", "values = adam, muon\n")


def test_ranges_become_wider_on_resume(folder):
    store = folder / "s.db"
    before, _ = sweep(folder, TWO_CHOICES, trials=6)
    widen = ("--resume", "a", "--store", store, "-q")
    _, err = run("sweep", *widen, "--trials", 30, "--sweep.train.learning_rate.max", 1)
    assert "ranges are wider now" in err, err
    equal([searched(folder)["train.learning_rate"][k] for k in ("min", "max")], [0.01, 1])
    trials = show(store, "a")["trials"]
    equal([t["params"] for t in trials[:6]], [t["params"] for t in before])
    assert any(t["params"]["train.learning_rate"] > 0.05 for t in trials[6:]), trials
    assert all(0.01 <= t["params"]["train.learning_rate"] <= 1 for t in trials), trials

    # by a file as well, which has what the command gave before
    wide = write(folder, "wide.ini", TWO_CHOICES.replace("min = 0.01\nmax = 0.05", "min = 0.001\nmax = 1"))
    run("sweep", wide, *widen, "--trials", 31)
    equal([searched(folder)["train.learning_rate"][k] for k in ("min", "max")], [0.001, 1])
    _, err = run("sweep", *widen, "--trials", 32)
    assert "wider" not in err, err


def test_any_other_space_is_a_new_study(folder):
    sweep(folder, TWO_CHOICES, trials=2)
    config = folder / "a.ini"
    for more, says in ((("--sweep.train.learning_rate.max", 0.04), "0.01 to 0.05, the config only 0.01 to 0.04"),
                       (("--sweep.train.learning_rate.distribution", "linear"), "train.learning_rate is searched on another scale"),
                       (("--sweep.train.optimizer.values", "adam"), "train.optimizer"),
                       (("--sweep.train.gamma.min", 0.9), "searches train.gamma, the study does not"),
                       (("--train.gamma", 0.9), "train.gamma is 0.9, the study a was begun with 0.99")):
        for words in ((), (config,)):
            message = fails("sweep", *words, "--resume", "a", "--store", folder / "s.db", "--trials", 3, *more, code=2, says=says)
            assert "new study with --name" in message, message
    equal(len(show(folder / "s.db", "a")["trials"]), 2)
    # what belongs to the machine is that of today
    fails("sweep", config, "--resume", "a", "--store", folder / "s.db", "--trials", 3, "--sweep.launcher", "pbs", code=2,
          says="sweep.launcher is 'pbs'")


def test_a_new_choice_comes_after_the_old_ones(folder):
    sweep(folder, TINY.replace("size = 256", "size = 64") + "[sweep]\nmethod = random\n[sweep.train.horizon]\ndistribution = categorical\nvalues = 8, 16\n"
          "[sweep.train.beta2]\n[sweep.train.learning_rate]\n", trials=6)
    before = show(folder / "s.db", "a")["trials"]
    run("sweep", "--resume", "a", "--store", folder / "s.db", "--trials", 24, "-q", "--sweep.train.horizon.values", "4, 8, 16")
    trials = show(folder / "s.db", "a")["trials"]
    equal([t["params"] for t in trials[:6]], [t["params"] for t in before])
    equal({t["params"]["train.horizon"] for t in trials}, {"4", "8", "16"})


def test_another_config_does_not_teach(folder):
    store, sections = folder / "s.db", "[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n"
    sweep(folder, TINY + sections, "easy", trials=4)
    new = lambda name, text, **more: run("sweep", write(folder, name + ".ini", text), "--store", store, "--name", name, "--from", "easy",
                                         "--trials", 1, "-q", **more)
    far = TINY.replace("core = none", "core = mlp").replace("threads = 1", "threads = 2\ngamma = 0.9") + sections
    _, err = new("far", far, code=2)
    for text in ("policy.core is none there and mlp here", "train.gamma is 0.99 there and 0.9 here",
                 "[sweep.SECTION.KEY]"):
        assert text in err, (text, err)
    assert "threads" not in err and "no study" in run("show", "far", "--store", store, code=1)[1]
    _, err = new("near", TINY.replace("threads = 1", "threads = 1\ngamma = 0.985\nbeta2 = 0.5") + sections)  # beta2: muon
    assert "count as near ones: train.gamma is 0.99 there and 0.985 here" in err and "beta2" not in err, err
    # of another difficulty the front alone is taken, whatever else differs
    _, err = new("harder", far.replace("\nn = 1\n", "\nn = 5\n"))
    assert "of another game, or of other settings of it, cannot be compared: this study tries configs of its front once" in err and "policy.core" not in err, err
    # as a parameter the difficulty is part of the point, and the trials teach
    _, err = new("both", TINY.replace("\nn = 1\n", "\nn = 2\n") + sections + "[sweep.env.n]\ndistribution = int\nmin = 1\nmax = 5\n")
    assert "4 of 4 finished trials of easy teach this study" in err, err


def test_the_advice_on_bounds_is_a_command_that_runs(folder):
    store = folder / "s.db"
    text = TINY.replace("core = none\nhidden_size = 8", "hidden_size = 16") + """
[sweep]
cost = env_steps
[sweep.train.learning_rate]
min = 0.0005
max = 0.004
[sweep.train.total_timesteps]
min = 10k
max = 160k
"""  # rates so low that the front, of many lengths, leans on the upper bound
    sweep(folder, text, trials=20)
    out, _ = run("show", "a", "--store", store)
    commands = [line.strip() for line in out.splitlines() if "--resume a" in line and "--sweep." in line]
    equal(len(commands), 1)
    words = shlex.split(commands[0])
    equal(words[:4], ["trawl", "sweep", "--resume", "a"])
    old = searched(folder)
    run(*words[1:], "-q")
    assert len(show(store, "a")["trials"]) == 40
    for flag, value in zip(words, words[1:]):
        if flag.startswith("--sweep."):
            key, side = flag[len("--sweep."):].rsplit(".", 1)
            equal(searched(folder)[key][side], float(value))
            assert float(value) != old[key][side]
