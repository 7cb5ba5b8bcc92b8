"""Wrong input of every kind: an exit code that is not 0, one message with place, finding and advice, and no half-written
file."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import tap
from tap import TINY, TINY_SWEEP, Skip, equal, fails, rows, run, show, write

NOBODY = 65534


def without_root(folder, *args, says, code=1):
    """Runs trawl as a user whom the file modes bind, in `folder`."""
    if os.geteuid() != 0:
        return fails(*args, code=code, says=says, cwd=folder)
    # the binary's own folder may be closed to that user
    place = tempfile.mkdtemp(prefix="trawl-bin-")
    try:
        os.chmod(place, 0o755)
        binary = shutil.copy(tap.TRAWL, place)
        done = subprocess.run([binary, *map(str, args)], cwd=folder, user=NOBODY, group=NOBODY, text=True, capture_output=True,
                              timeout=tap.PATIENCE_S)
    finally:
        shutil.rmtree(place)
    equal(done.returncode, code)
    lines = tap.errors(done.stderr)
    equal(len(lines), 1)
    assert says in lines[0], lines[0]
    return lines[0]


def test_missing_file(folder):
    for command in (["train"], ["sweep", "--name", "a", "--store", folder / "s.db"], ["bench", "train"]):
        message = fails(*command, folder / "nothing.ini", code=1, says="nothing.ini")
        assert "No such file" in message or "no such file" in message, message
    assert not (folder / "s.db").exists()
    fails("eval", folder / "nothing.ckpt", code=1, says="nothing.ckpt")
    fails("train", "--resume", folder / "nothing.ckpt", code=1, says="nothing.ckpt")
    for command in (["ls"], ["show", "a"], ["report", "a"], ["export", "a"], ["sweep", "--resume", "a"]):
        fails(*command, "--store", folder / "nothing.db", code=1, says="nothing.db")
    assert not (folder / "nothing.db").exists()
    fails("train", folder, code=1, says=str(folder))


def test_what_no_config_holds(folder):
    """Every form of it is in tests/base/config/test_config_bad.c; here, how the program ends, with its own options."""
    config = write(folder, "t.ini", TINY + "learning_rte = 0.1\n")
    line = config.read_text().splitlines().index("learning_rte = 0.1") + 1
    fails("train", config, code=2, says=["t.ini:%d" % line, "train.learning_rte", "train.learning_rate"])
    fails("train", "squared", "--train.learning-rte", 0.1, code=2, says=["command line", "train.learning_rate"])
    fails("train", "squared", "--env.grid", 3, code=2, says="env.grid")
    fails("train", write(folder, "v.ini", TINY + "gamma = 1.5\n"), code=2, says=["v.ini:", "train.gamma", "1.5"])
    fails("train", "squared", "--train.total_agents", 0, code=2, says=["command line", "train.total_agents"])
    fails("train", "squared", "--train.learning_rate", "nan", code=2, says="train.learning_rate")
    fails("train", "squared", "--train.seed", 2**53 + 1, code=2, says=["train.seed", str(2**53)])
    fails("train", write(folder, "k.ini", TINY + "threads = 2\n"), code=2, says=["k.ini:", "threads"])


def test_options_of_the_config_without_their_section(folder):
    for command, given, key in ((["train", "squared"], "--device", "train.device"), (["train", "squared"], "--Learning-Rate=1", "train.learning_rate"),
                                (["sweep", "squared", "--name", "a"], "--hidden_size", "policy.hidden_size"), (["bench", "train", "squared"], "--gamma", "train.gamma")):
        fails(*command, given, "1", code=2, says=["no option", "did you mean '--%s'" % key], cwd=folder)
    fails("check", "--store", "a.db", code=2, says=["one of its words", "trawl check STORE"])


def sweep_fails(folder, section, says, code=2):
    config = write(folder, "sweep.ini", TINY + section)
    text = config.read_text().splitlines()
    at = max(i for i, line in enumerate(text, 1) if line.startswith("[sweep."))
    message = fails("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 2, code=code, says=says)
    assert any("sweep.ini:%d" % n in message for n in range(at, len(text) + 1)), (at, message)
    assert not (folder / "s.db").exists()


def test_whole_numbers_in_any_form(folder):
    """An exponent, a suffix or a fraction that is 0 is exact, on the command line and in a config; anything else is refused."""
    config = write(folder, "s.ini", TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 4.096e3").replace("min = 4", "min = 0.04e2"))
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", "3e0", "--runs-per-device", "1.0", "--seed", "4294967.295e3", "-q")
    study = show(folder / "s.db", "a")["study"]
    equal((study["trials_max"], study["seed"]), (3, 4294967295))
    run("add", "a", "--trials", "0.2e1", "--store", folder / "s.db")
    equal(show(folder / "s.db", "a")["study"]["trials_max"], 5)
    for wrong in ("1.5", "1e-1", "1e19", "1.00000000000000000001", "1e"):
        fails("sweep", config, "--store", folder / "s.db", "--name", "b", "--trials", wrong, code=2, says=["--trials", wrong, "0 to 9.2e18"])


def test_a_store_of_an_unknown_kind(folder):
    for address in ("mysql://host/x", "postgresq://host/x", "http://host/x", "redis:x", "file:x.db"):
        for command in (["ls"], ["show", "a"], ["serve"], ["daemon"], ["node"], ["gc"], ["sync"], ["stop", "a"], ["doctor"], ["export", "a"],
                        ["sweep", write(folder, "s.ini", TINY_SWEEP), "--name", "a"], ["sweep", "--resume", "a"],
                        ["import", write(folder, "r.csv", "a\n1\n"), "--study", "a"]):
            fails(*command, "--store", address, code=2, says=[address, "no kind of store", "postgresql://HOST/DATABASE"], cwd=folder)
        fails("check", address, code=2, says=["no kind of store", "./" + address])
        fails("backup", address, "y.db", code=2, says="no kind of store", cwd=folder)
        fails("migrate", write(folder, "old.db", ""), address, code=2, says="no kind of store", cwd=folder)
    for address in ("postgresql:", "postgres:/host/x"):
        for command in (["ls"], ["sweep", folder / "s.ini", "--name", "a"]):
            fails(*command, "--store", address, code=2, says=[address, "two slashes: postgresql://HOST/DATABASE"], cwd=folder)
    equal(sorted(p.name for p in folder.iterdir()), ["old.db", "r.csv", "s.ini"])
    run("sweep", "s.ini", "--name", "a", "--trials", 1, "-q", "--store", "./redis:x", cwd=folder)
    equal(len(show(folder / "redis:x", "a")["trials"]), 1)
    run("train", "s.ini", "-o", "a:b.ckpt", "--track", "webhook", "--track.offline", "true", "--track.webhook_url", "http://127.0.0.1:9/",
        "-q", cwd=folder)
    assert (folder / "a:b.ckpt.track.db").exists()


def test_serve_refuses_what_never_becomes_a_store(folder):
    (folder / "text.db").write_text("no store\n" * 100)
    (folder / "d.db").mkdir()
    fails("serve", "--port", 0, "--store", folder / "text.db", code=1, says=["text.db", "not a Trawl store"])
    fails("serve", "--port", 0, "--store", folder / "d.db", code=1, says=["d.db", "a directory"])
    fails("serve", "--port", 0, "--store", "/dev/null", code=1, says="is not a file")


def test_long_words_leave_room_for_advice(folder):
    for command in (["train", "w" * 6000], ["sweep", "w" * 6000, "--name", "a"], ["export", "w" * 200, "--store", "w" * 6000]):
        message = fails(*command, code=2 if command[0] != "export" else 1, cwd=folder)
        assert len(message) < 2100 and message.endswith(("lists all", "read", "--store'", "w'")), message[-200:]
    message = fails("train", "w\033[31m.ini", code=1, cwd=folder)
    assert "\033" not in message and "w?[31m.ini" in message, message


def test_search_ranges(folder):
    """Those that the option tables or the sweep itself forbid; the others are in tests/base/config/test_config_bad.c."""
    sweep_fails(folder, "[sweep.train.gamma]\nmin = 0.9\nmax = 1.5\n", says=["train.gamma", "1.5"])
    sweep_fails(folder, "[sweep.train.optimizer]\nvalues = adam, sgd\n", says=["train.optimizer", "sgd"])
    sweep_fails(folder, "[sweep.train.gamma]\nvalues = 0.9, 0.99, 9e-1\n", says=["train.gamma", "twice"])
    sweep_fails(folder, "[sweep.train.minibatch_size]\ndistribution = pow2\nmin = 65\nmax = 127\n", says="power of two")
    sweep_fails(folder, "[sweep.train.seed]\ndistribution = int\nmin = 0\nmax = 5\n", says=["train.seed", "of its own"])
    sweep_fails(folder, "[sweep.sweep.n_init]\ndistribution = int\nmin = 1\nmax = 3\n", says=["sweep.n_init", "sweep itself"])
    sweep_fails(folder, "[sweep.env.name]\nvalues = pong, squared\n", says="env.name")
    sweep_fails(folder, "[sweep.train.gamma]\n[sweep.train.gamma]\n", says="train.gamma")


def test_a_sweep_of_nothing_teaches(folder):
    message = fails("sweep", write(folder, "t.ini", TINY), "--store", folder / "s.db", "--name", "a", code=2,
                    says=["[sweep.train.learning_rate]", "train.gamma", "policy.hidden_size"])
    assert "train.seed" not in message
    assert not (folder / "s.db").exists()


def test_sweep_options(folder):
    def bad(text, says):
        config = write(folder, "b.ini", TINY_SWEEP.replace("method = sobol", text))
        fails("sweep", config, "--store", folder / "s.db", "--name", "a", code=2, says=["b.ini:"] + says)

    bad("metric = pref", ["pref", "perf"])
    bad("metric = approx_kl", ["approx_kl", "train/approx_kl", "score"])
    bad("budget = soon", ["soon", "2h"])
    bad("method = annealing", ["annealing", "pareto"])
    bad("trails = 4", ["trails", "trials"])
    assert not (folder / "s.db").exists()
    config = write(folder, "sweep.ini", TINY_SWEEP)
    fails("sweep", config, "--store", folder / "s.db", code=2, says="--name")
    fails("sweep", config, "--store", folder / "s.db", "--name", "a b/c", code=2, says="a b/c")
    for name in ("-a", ".", "\u00e9", "<b>", "x" * 101):
        fails("sweep", config, "--store", folder / "s.db", "--name=" + name, code=2, says="sweep: --name")
    fails("sweep", config, "--store", folder / "s.db", "--name", "a", "--resume", "a", code=2, says="not both")
    fails("sweep", "--store", folder / "s.db", "--name", "a", code=2, says="config")
    config = write(folder, "wide.ini", TINY_SWEEP + "[sweep.train.devices]\nmin = 1\nmax = 4\n")
    fails("sweep", config, "--store", folder / "wide.db", "--name", "a", "--devices", "cuda:0-1,cuda:2-5", code=2,
          says=["train.devices is up to 4", "cuda:0-1 of sweep.devices has 2 GPUs"])
    assert not (folder / "wide.db").exists()
    fails("sweep", config, "--store", folder / "wide.db", "--name", "a", "--sweep.launcher", "slurm:x", code=2, says="sweep.launcher")
    equal(json.loads(run("ls", "--store", folder / "wide.db", "--json")[0]), [])
    run("sweep", config, "--store", folder / "wide.db", "--name", "a", "--trials", 1, "-q")
    fails("sweep", "--resume", "a", "--store", folder / "wide.db", "--devices", "cuda:0", code=2, says="has 1 GPU")
    equal([study["state"] for study in json.loads(run("ls", "--store", folder / "wide.db", "--json")[0])], ["ended"])


def test_binary_and_huge_configs(folder):
    path = folder / "binary.ini"
    path.write_bytes(pathlib.Path(tap.TRAWL).read_bytes()[:4096])
    fails("train", path, code=2, says="binary.ini")
    path = folder / "huge.ini"
    with open(path, "wb") as f:
        f.truncate(100 << 20)
    message = fails("train", path, code=2, says="huge.ini")
    assert len(message) < 1200
    fails("train", write(folder, "empty.ini", ""), code=2, says="[env]")


def test_unknown_game(folder):
    fails("train", "squared", "cartpole", code=2, says="two games are named, squared and cartpole")
    fails("train", "brakeout", code=2, says="breakout")
    fails("train", write(folder, "e.ini", "[env]\nname = cartpol\n"), code=2, says=["e.ini:2", "cartpole"])
    fails("bench", "env", "pung", code=2, says="pong")


def test_sizes_that_do_not_divide(folder):
    fails("train", "squared", "--train.horizon", 60, "--train.minibatch_size", 4096, code=2, says=["4096", "60"])
    fails("train", "squared", "--train.total_agents", 16, "--train.horizon", 16, "--train.minibatch_size", 4096, code=2,
          says="4096")
    fails("train", "squared", "--train.total_agents", 6, "--train.horizon", 1, "--train.minibatch_size", 5, "--train.devices", 2, code=2,
          says="5 segments of train.horizon 1 step, which")
    message = fails("train", "squared", "--policy.core", "none", "--train.shuffle", "steps", "--train.minibatch_size", 33, "--train.devices", 2,
                    "--train.total_agents", 64, code=2, says=["33 (single steps", "train.devices 2", "try minibatch_size 34"])
    assert "segment" not in message, message


def test_absurd_sizes_are_refused_before_allocating(folder):
    message = fails("train", "breakout", "--train.total_agents", 1048576, "--train.horizon", 1024, "--policy.hidden_size", 4096,
                    "--train.minibatch_size", 1048576, "--train.total_timesteps", "10G", code=1, says="lower")
    assert "G" in message or "T" in message, message
    fails("train", "breakout", "--train.total_agents", "1e30", code=2, says="train.total_agents")
    fails("bench", "env", "breakout", "--envs", "1e15", code=2, says="--envs")


def test_broken_checkpoints(folder):
    """Every way to break one is in tests/trainer/test_resume.c."""
    good, bad = folder / "good.ckpt", folder / "bad.ckpt"
    run("train", write(folder, "t.ini", TINY), "-q", "-o", good)
    data = good.read_bytes()
    for content in (data[:len(data) // 2], b"", TINY.encode(), data[:100] + bytes([data[100] ^ 16]) + data[101:]):
        bad.write_bytes(content)
        for command in (["eval"], ["train", "--resume"]):
            fails(*command, bad, code=1, says="bad.ckpt")
        equal(bad.read_bytes(), content)
    run("eval", good, "--episodes", 4)
    fails("train", "--resume", good, "--policy.hidden_size", 16, code=2, says="good.ckpt")


def tiny_store(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "sweep.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 2, "-q")
    return store


def every_reader(store, code, says):
    for command in (["ls"], ["show", "a"], ["report", "a"], ["export", "a"], ["sweep", "--resume", "a"]):
        fails(*command, "--store", store, code=code, says=says)


def test_nothing_is_written_over_a_store(folder):
    store, new = tiny_store(folder), folder / "new.db"
    before = store.read_bytes()
    for command in (["report", "a", "--store", store, "--format", "csv", "-o"], ["export", "a", "--store", store, "--format", "ini", "-o"],
                    ["rerun", "a", "--store", store, "--trial", 0, "-o"], ["train", write(folder, "t.ini", TINY), "-o"],
                    ["daemon", "--store", new, "--log"]):
        fails(*command, store, code=2, says=store.name + " is a store and would be written over")
    equal(store.read_bytes(), before)
    fails("daemon", "--store", new, "--log", new, code=2, says="new.db is a store")


def test_a_suffix_that_no_format_has_is_refused(folder):
    store = tiny_store(folder)
    for name in ("best.parquet", "best.txt", "folder.ini/best.CSV"):
        fails("export", "a", "--store", store, "-o", folder / name, code=2, says=["no format is known by .", "--format"])
        assert not (folder / name).exists()
    for name in ("best", ".best", "best.ini"):
        run("export", "a", "--store", store, "-o", folder / name)
    run("export", "a", "--store", store, "--format", "ini", "-o", folder / "best.txt")
    equal({(folder / name).read_text().count("[train]") for name in ("best", ".best", "best.ini", "best.txt")}, {1})


def test_nothing_is_written_over_an_input_or_another_output(folder):
    """Nor is a checkpoint or a config replaced by a file of another kind."""
    config, ckpt = write(folder, "t.ini", TINY), folder / "c.ckpt"
    store = folder / "s.db"
    run("train", config, "-o", ckpt, "-q")
    run("train", config, "-o", ckpt, "-q")  # a checkpoint over a checkpoint
    sweep = write(folder, "sweep.ini", TINY_SWEEP.replace("[sweep]", "[sweep]\nkeep = all"))
    run("sweep", sweep, "--store", store, "--name", "a", "--trials", 2, "-q")
    kept = folder / "s.db.checkpoints" / "a-0.ckpt"
    plain, link, bare = write(folder, "plain", TINY), folder / "link.ckpt", folder / "bare"
    os.symlink("c.ckpt", link)
    os.link(plain, bare)
    before = {path: path.read_bytes() for path in (config, ckpt, sweep, kept, plain)}
    onnx = folder / "q.onnx"
    of_a = ("a", "--store", store)
    for command, says in (
            (("export", ckpt, "-f", "onnx", "-o", ckpt), "c.ckpt is a checkpoint"),
            (("export", ckpt, "-f", "onnx", "-o", link), "link.ckpt is a checkpoint"),
            (("export", ckpt, "-o", onnx, "--samples", ckpt), "c.ckpt is a checkpoint"),
            (("export", ckpt, "-o", onnx, "--samples", folder / "." / "q.onnx"), "reads or writes too"),
            (("export", ckpt, "-o", onnx, "--samples", "q.onnx"), "reads or writes too"),
            (("export", *of_a, "-o", ckpt, "-f", "ini"), "c.ckpt is a checkpoint"),
            (("export", *of_a, "-o", config, "-f", "csv"), "t.ini is a config"),
            (("report", *of_a, "-o", ckpt, "-f", "html"), "c.ckpt is a checkpoint"),
            (("compare", "a", *of_a, "-o", config), "t.ini is a config"),
            (("compare", "a", *of_a, "-o", ckpt), "c.ckpt is a checkpoint"),
            (("daemon", "--store", store, "--log", config), "t.ini is a config"),
            (("train", config, "-o", config), "t.ini is a config"),
            (("train", config, "-o", sweep), "sweep.ini is a config"),
            (("train", plain, "-o", bare), "reads or writes too"),
            (("train", config, "--from-policy", ckpt, "-o", link), "reads or writes too"),
            (("train", config, "--track", "webhook", "--store", folder / "n.db", "-o", "n.db"), "reads or writes too"),
            (("rerun", *of_a, "--trial", 0, "-o", kept), "reads or writes too")):
        fails(*command, code=2, cwd=folder, says=[says, "name another file"])
    equal({path: path.read_bytes() for path in before}, before)
    assert not onnx.exists()
    run("train", "--resume", ckpt, "--train.total_timesteps", 8192, "-o", ckpt, "-q")
    run("export", *of_a, "-o", config)  # a config over a config


def test_store_of_a_newer_schema(folder):
    store = tiny_store(folder)
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    before = store.read_bytes()
    every_reader(store, 1, ["s.db", "999"])
    fails("sweep", folder / "sweep.ini", "--store", store, "--name", "b", code=1, says="999")
    equal(store.read_bytes(), before)


def test_store_of_an_older_schema(folder):
    store = tiny_store(folder)
    with sqlite3.connect(store) as db:  # what version 13 added
        db.executescript("ALTER TABLE node DROP COLUMN meets; PRAGMA user_version = 12")
    db.close()
    fails("show", "a", "--store", store, code=1, says="'trawl sweep --resume'")
    n = rows(store, "SELECT count(*) FROM trial")[0][0]
    run("sweep", "--resume", "a", "--store", store, "--trials", n + 1)
    equal(rows(store, "SELECT count(*) FROM trial WHERE state = 'done'"), [(n + 1,)])
    run("check", store)


def test_corrupt_store(folder):
    store = tiny_store(folder)
    data = bytearray(store.read_bytes())
    for name, content in (("text", b"this is not a database, but long enough to look at" * 100), ("empty header", bytes(100) + data[100:]),
                          ("cut", data[:5000]), ("scrambled", data[:4096] + random.Random(1).randbytes(len(data) - 4096))):
        store.write_bytes(content)
        for command in (["show", "a"], ["sweep", "--resume", "a"]):
            message = fails(*command, "--store", store, code=1, says="s.db")
            assert len(message) > 30, (name, message)


def test_read_only_directory(folder):
    os.chmod(folder, 0o755)
    config = write(folder, "sweep.ini", TINY_SWEEP)
    closed = folder / "closed"
    closed.mkdir()
    os.chmod(closed, 0o555)
    without_root(folder, "train", config, "-o", closed / "x.ckpt", says="closed")
    without_root(folder, "sweep", config, "--store", closed / "s.db", "--name", "a", says="closed")
    equal(list(closed.iterdir()), [])
    fails("train", config, "-o", folder / "no" / "where" / "x.ckpt", code=1, says="x.ckpt")
    fails("train", config, "-o", closed, code=1, says="directory")


def test_a_store_on_a_read_only_mount(folder):
    """What only reads it works; what has to write it names the mount."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    fixed = folder / "fixed"
    fixed.mkdir()
    store = tiny_store(fixed)
    for words in (["--bind", fixed, fixed], ["-o", "remount,ro,bind", fixed]):
        if subprocess.run(["mount", *words], capture_output=True).returncode != 0:
            subprocess.run(["umount", "-l", fixed], capture_output=True)
            raise Skip("mounting is not allowed here")
    try:
        run("show", "a", "--store", store)
        for command in (["node", "--devices", "cpu"], ["join", "--devices", "cpu"], ["sweep", "--resume", "a", "--trials", 9]):
            fails(*command, "--store", store, code=1, says=[store.name, "Read-only file system"])
    finally:
        subprocess.run(["umount", "-l", fixed], check=True)


def test_full_disk(folder):
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system")
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode != 0:
        raise Skip("mounting a small file system is not allowed here")
    try:
        config = write(folder, "sweep.ini", TINY_SWEEP)
        (disk / "old.ckpt").write_bytes(b"kept")
        fails("train", config, "-o", disk / "old.ckpt", "--policy.hidden_size", 128, "-q", "--train.total_timesteps", 256,
              "--policy.core", "mlp", "--policy.num_layers", 4, code=1, says="old.ckpt")
        equal((disk / "old.ckpt").read_bytes(), b"kept")
        equal([p.name for p in disk.iterdir()], ["old.ckpt"])
    finally:
        subprocess.run(["umount", disk], check=True)


def test_second_sweep_on_a_store_in_use(folder):
    config = write(folder, "sweep.ini", TINY_SWEEP)
    store = folder / "s.db"
    first = tap.start("sweep", config, "--store", store, "--name", "a", "--trials", 100000)
    tap.wait_for(lambda: tap.trials_now(store), first)
    fails("sweep", config, "--store", store, "--name", "b", "--trials", 1, code=1, says=str(first.pid))
    fails("sweep", "--resume", "a", "--store", store, code=1, says=str(first.pid))
    tap.end(first, signal.SIGINT, 130)
    equal([s["name"] for s in json.loads(run("ls", "--store", store, "--json")[0])], ["a"])


def test_study_name_twice(folder):
    store = tiny_store(folder)
    fails("sweep", folder / "sweep.ini", "--store", store, "--name", "a", "--trials", 2, code=1, says=["a", "--resume"])
    equal(len(show(store, "a")["trials"]), 2)
    fails("show", "aa", "--store", store, code=1, says=["aa", "a"])


def test_trials_that_cannot_train_fail_with_the_reason(folder):
    text = TINY.replace("core = none", "core = mlp\nnum_layers = 16") + """[sweep]
method = random
max_failures = 3
[sweep.policy.hidden_size]
distribution = categorical
values = %s
[sweep.train.gamma]
"""
    config = write(folder, "m.ini", (text % "8, 65536").replace("max_failures = 3", "max_failures = 0"))  # 300 GB and more
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 12, "-q")
    trials = show(folder / "s.db", "a")["trials"]
    for t in trials:
        equal(t["state"], "done" if t["params"]["policy.hidden_size"] == "8" else "failed")
        if t["state"] == "failed":
            assert "lower" in t["reason"] and not t["on_front"], t
    assert {t["state"] for t in trials} == {"done", "failed"}
    config = write(folder, "n.ini", text % "65536, 32768")
    fails("sweep", config, "--store", folder / "s.db", "--name", "b", "--trials", 12, "-q", code=1, says=["3 trials failed", "lower"])
    equal(len(show(folder / "s.db", "b")["trials"]), 3)


def test_a_run_shorter_than_an_episode_has_a_score(folder):
    config = write(folder, "c.ini", TINY.replace("squared\nn = 1", "memory\nlength = 1000") + "[sweep.train.gamma]\n")
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 1, "-q")
    trial = show(folder / "s.db", "a")["trials"][0]
    equal((trial["state"], trial["eval_episodes"], trial["eval_unfinished"]), ("done", 256, 0))
    assert 0 < trial["score"] < 1, trial  # a guess is right half of the time


def test_numbers_in_a_comma_decimal_locale(folder):
    names = subprocess.run(["locale", "-a"], text=True, capture_output=True).stdout.split()
    env, wanted = dict(os.environ), next((n for n in names if n.startswith(("de_DE", "fr_FR", "nl_NL"))), None)
    if wanted is None:
        if subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], capture_output=True).returncode > 1 or \
                not (folder / "de_DE.UTF-8").exists():
            wanted = "de_DE.UTF-8"  # the program must not care; that it is missing is said
            print("# no comma-decimal locale is installed: only the environment's words are tested")
        else:
            env["LOCPATH"], wanted = str(folder), "de_DE.UTF-8"
    env.update(LC_ALL=wanted, LANG=wanted)
    config = write(folder, "sweep.ini", TINY_SWEEP)
    plain = json.loads(run("train", config, "--json", "-q")[0])
    local = json.loads(run("train", config, "--json", "-q", env=env)[0])
    equal(local["ep_return"], plain["ep_return"])
    fails("train", "squared", "--train.gamma", "0,99", code=2, says="0,99", env=env)
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 2, "-q", env=env)
    out, _ = run("export", "a", "--store", folder / "s.db", "--pick", "trial=1", env=env)
    assert "gamma = 0." in out, out
    equal(out, run("export", "a", "--store", folder / "s.db", "--pick", "trial=1")[0])


def test_standard_streams_that_are_full_or_closed(folder):
    store = tiny_store(folder)
    script = '"$0" "$@" %s'

    def shell(redirect, *args):
        return subprocess.run(["sh", "-c", script % redirect, tap.TRAWL, *map(str, args)], text=True, capture_output=True, cwd=folder)

    for args in (["ls", "--store", store], ["report", "a", "--store", store], ["show", "a", "--store", store, "--json"]):
        done = shell(">/dev/full", *args)
        equal(done.returncode, 1)
        assert "stdout" in done.stderr and "descriptor" not in done.stderr, done.stderr
        done = shell(">&-", *args)
        equal(done.returncode, 1)
        assert "stdout" in done.stderr, done.stderr
    done = shell("2>err | head -c 1", "report", "a", "--store", store)
    equal((folder / "err").read_text(), "")
    # with no stream at all, files get numbers 0 to 2 and must stay free of messages
    shell("<&- >&- 2>&-", "sweep", folder / "sweep.ini", "--store", store, "--name", "b", "--trials", 2)
    shell("<&- >&- 2>&-", "train", folder / "sweep.ini", "-o", folder / "x.ckpt")
    equal(len(show(store, "b")["trials"]), 2)
    run("eval", folder / "x.ckpt", "-n", 4)
    for option in ("--episodes", "--agents", "--max-steps"):
        fails("eval", folder / "x.ckpt", option, 0, code=2, says=option + " is 0")
    equal((folder / "s.db").read_bytes()[:15], b"SQLite format 3")


def test_little_address_space_is_said_and_no_hang(folder):
    if b"__asan_init" in pathlib.Path(tap.TRAWL).read_bytes():
        raise Skip("the address sanitizer maps more than any limit")
    # OpenBLAS tries for ever to map its work area; one thread of its own, so that it gets through its start
    config = write(folder, "t.ini", TINY)
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")

    def limited(limit, *words):
        return subprocess.run([tap.TRAWL, *words], capture_output=True, text=True, timeout=tap.PATIENCE_S, env=env,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    limit = 200 << 20  # what the libraries need to be mapped at all; CUDA's are large
    while limited(limit, "--version").returncode != 0 and limit < 8 << 30:
        limit += 100 << 20
    done = limited(limit + (100 << 20), "train", str(config), "--train.threads", "3")
    equal(done.returncode, 1)
    assert "address space" in done.stderr and "ulimit -v" in done.stderr, done.stderr


def test_worker_is_not_for_people(folder):
    fails("worker", code=2, says="trawl sweep")
