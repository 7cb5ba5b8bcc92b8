"""Configs of PufferLib on the command line: several files, one message, errors, sweeps; and hints of other mistakes."""
import os
import re

from tap import TINY, equal, fails, run, show, write

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "study", "dialect", "puffer")
SMALL = ["--train.total-timesteps", "4096", "--train.total-agents", "16", "--train.horizon", "16",
         "--train.minibatch-size", "256", "--train.threads", "1", "--policy.hidden-size", "8", "--policy.num-layers", "1"]


def puffer(name):
    return os.path.join(DATA, name + ".ini")


def values(text):
    """{"section.key": value} of an ini."""
    section, out = "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line:
            key, value = line.split(" = ", 1)
            out["%s.%s" % (section, key)] = value
    return out


def test_several_files_and_our_words(folder):
    ours, err = run("train", puffer("default4"), puffer("breakout4"), "--print-config")
    got = values(ours)
    equal((got["env.name"], got["policy.core"], got["policy.num_layers"], got["train.replay_rounding"], got["train.seed"]),
          ("breakout", "mingru", "2", "floor", "73"))
    equal(len(re.findall("read as a config of PufferLib 4.0", err)), 1)
    again, err = run("sweep", write(folder, "ours.ini", ours), "--print-config")
    equal(values(again), got)
    assert "PufferLib" not in err, err
    alone, _ = run("train", puffer("breakout4"), "--print-config")
    equal(values(alone), got)
    more = write(folder, "more.ini", "[env]\nwidth = 576\n[train]\ngamma = 0.9\nbeta1 = 0.5\n")
    later, _ = run("train", write(folder, "wide.ini", "[env]\nwidth = 600\n"), puffer("breakout4"), more, "--print-config")
    equal((values(later)["train.gamma"], values(later)["train.beta1"], values(later)["train.beta2"]),
          ("0.9", "0.5", "0.9986265112492152"))
    word, _ = run("train", puffer("default4"), "squared", "--print-config")
    equal((values(word)["env.name"], values(word)["train.gamma"]), ("squared", "0.995"))


def test_a_run_is_what_was_printed(folder):
    """The config in a checkpoint is the printed one: the printed config is trained."""
    printed, _ = run("train", puffer("raw_pl4_squared"), *SMALL, "--print-config")
    run("train", puffer("raw_pl4_squared"), *SMALL, "-o", folder / "a.ckpt")
    kept, _ = run("train", "--resume", folder / "a.ckpt", "--print-config")
    equal(values(kept), {key: v for key, v in values(printed).items() if key.count(".") == 1}) # no ranges
    equal((values(kept)["train.gae_lambda"], values(kept)["train.vf_clip_coef"]), ("0.9", "0.2"))


def test_all_that_is_wrong_at_once(folder):
    bad = write(folder, "bad.ini", "[base]\nenv_name = breakout\nworld_size = 4\n[env]\nheight = 5\nnonsense = 1\n"
                "[train]\nlearning_rat = 1\n")
    _, err = run("train", bad, code=2)
    for word in ("4 line(s) of this config", "bad.ini:3: base.world_size = 4", "bad.ini:5: env.height = 5: only 330", "bad.ini:6: unknown key env.nonsense",
                 "bad.ini:8: unknown key train.learning_rat; did you mean train.learning_rate?"):
        assert word in err, err
    own = write(folder, "own.ini", TINY + "[train.x]\ny = 1\n[polcy]\n[sweep.train.gamm]\n")
    _, err = run("sweep", own, "--name", "a", code=2, cwd=folder)
    assert "3 names are unknown" in err and "did you mean [policy]?" in err and "did you mean train.gamma?" in err, err


def test_less_than_a_minibatch_a_rollout_is_refused(folder):
    config = write(folder, "t.ini", TINY)  # a rollout is one minibatch
    run("train", config, "-q", "--train.replay_ratio", 0.5)  # one in two rollouts
    fails("train", config, "--train.replay_ratio", 0.5, "--train.replay_rounding", "floor", code=2,
          says=["train.replay_ratio 0.5", "less than one minibatch of 256", "nothing would be trained"])


def test_a_sweep_of_both_versions(folder):
    store = folder / "s.db"
    small = ["--sweep.devices", "cpu", "--sweep.max-cost", "0", "--quiet", "--store", store, "--trials", 2]
    only = write(folder, "only.ini", "[sweep]\nsweep_only = learning_rate, total_timesteps\n"
                 "[sweep.train.total_timesteps]\nmin = 2e3\nmax = 8e3\n")
    run("sweep", puffer("cartpole3"), only, "--name", "three", *SMALL, *small)
    run("sweep", puffer("default4"), puffer("squared4"), only, "--name", "four", *SMALL, *small)
    for name, metric in (("three", "ep_length"), ("four", "score")):
        study = show(store, name)
        equal(study["study"]["metric"], metric)
        equal([t["state"] for t in study["trials"]], ["done", "done"])
        for t in study["trials"]:
            equal(set(t["params"]), {"train.learning_rate", "train.total_timesteps"})


def test_lists_of_any_length_are_kept(folder):
    tags = ",".join("tag-%03d" % i for i in range(120))
    run("sweep", write(folder, "t.ini", TINY + "[sweep.train.gamma]\n[track]\ntags = %s\n" % tags), "--name", "a", "--trials", 1,
        "--store", folder / "s.db", "--quiet")
    run("sweep", "--resume", "a", "--trials", 2, "--store", folder / "s.db", "--quiet")
    equal([t["state"] for t in show(folder / "s.db", "a")["trials"]], ["done", "done"])
    out, _ = run("train", "cartpole", "--print-config", "--sweep.devices", ",".join("cuda:%d" % i for i in range(64)))
    config = write(folder, "d.ini", out)
    equal(values(run("train", config, "--print-config")[0])["sweep.devices"].count("cuda:"), 64)
    fails("train", write(folder, "l.ini", "[env]\nname = " + "x" * 70000), code=2, says="the value has 70000 bytes")


def test_hints_name_what_helps(folder):
    path = folder / "with space.ckpt"
    out, _ = run("train", write(folder, "t.ini", TINY), "-o", path)
    assert "`trawl eval '%s'`" % path in out, out
    err = fails("train", path, code=2, says="is a checkpoint")
    assert "`trawl train --resume '%s'` continues" % path in err, err
    fails("sweep", path, "--name", "a", code=2, says="is a checkpoint")
    out, _ = run("train", "cartpole", "--train.device", "gpu", "--print-config")
    equal(values(out)["train.device"], "cuda")
    fails("train", "cartpole", "--train.device", "gpuu", code=2, says="allowed is one of auto, cpu, cuda")
    fails("train", "cartpole", "--train.device", "cuda:1", code=2, says=("did you mean cuda?", "CUDA_VISIBLE_DEVICES", "--devices cuda:N"))
    assert "device = cuda\n" in run("train", "cartpole", "--train.device", "cuda:0", "--print-config")[0]
    err = fails("train", "--resume", path, "--train.optimizer", "adam", code=2, says="made with train.optimizer muon, this run has adam")
    assert "number of the choice" not in err
