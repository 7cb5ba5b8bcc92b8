"""tap.py - a tiny TAP harness and helpers around the trawl binary for the end-to-end tests.

A test is a function whose name starts with test_; it gets a fresh directory and fails by raising. A module's before_each()
is called before each of its tests.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TRAWL = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "trawl"

# A run of some 0.05 s: these tests are about the machinery, not about learning.
TINY = """
[env]
name = squared
n = 1

[policy]
core = none
hidden_size = 8

[train]
total_agents = 16
horizon = 16
minibatch_size = 256
total_timesteps = 4096
threads = 1
device = cpu
"""


def space(table):
    """Sections of searched parameters from a line for each, "train.gamma: min = 0.8; max = 0.99"."""
    rows = (line.split(": ", 1) for line in table.strip().splitlines())
    return "".join("\n[sweep.%s]\n%s\n" % (name, keys.replace("; ", "\n")) for name, keys in rows)


SPACE = space("""
train.learning_rate: min = 0.001; max = 0.1
train.gamma: min = 0.8; max = 0.99
""")
TINY_SWEEP = TINY + "\n[sweep]\nmethod = sobol\n" + SPACE + space("policy.hidden_size: min = 4; max = 16")

# Of the game that `trawl env new` writes: while the gate is shut its steps take a millisecond, on average.
STEP = "state->apple_y++;"
GATE = STEP + """
    {
        extern int access(const char *, int), usleep(unsigned);
        static _Thread_local int is_open, n;
        if (!is_open && ++n %% 64 == 0 && !(is_open = access("%s", 0) == 0))
            usleep(64000);
    }"""


# A bound for events that must come, also on a slow machine that is busy with other tests; no test measures time.
PATIENCE_S = 240

started = []  # processes that start() made for the running test


class Skip(Exception):
    """Raised by a test that cannot run here; the reason is printed."""


def package(what, variable, program="python"):
    """The program of `tools/test --servers`, or the one that the variable names; without either the test is skipped."""
    servers = os.environ.get("TRAWL_SERVERS")
    found = os.environ.get(variable) or (servers and os.path.join(servers, "bin", program))
    if not found:
        raise Skip("needs %s: tools/test --servers, or %s" % (what, variable))
    return found


def run(*args, cwd=None, code=0, env=None, timeout=PATIENCE_S, **more):
    """Runs trawl; its exit code must be `code`. Returns stdout, stderr."""
    done = subprocess.run([TRAWL, *map(str, args)], cwd=cwd, env=env, timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, **more)
    assert done.returncode == code, "exit code %d, not %d\nstdout: %s\nstderr: %s" % (
        done.returncode, code, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout, done.stderr


def errors(stderr):
    """The error lines of stderr, which main prints once."""
    return [line for line in stderr.splitlines() if line.startswith("trawl: ")
            and not line.startswith(("trawl: warning: ", "trawl: info: "))]


def fails(*args, code, says=(), **more):
    """Runs trawl, which must fail with one message that holds every text of `says`. Returns the message."""
    _, stderr = run(*args, code=code, **more)
    lines = errors(stderr)
    assert len(lines) == 1, "one error line is wanted: %r" % stderr[-2000:]
    for text in [says] if isinstance(says, str) else says:
        assert text in lines[0], "%r is not in %r" % (text, lines[0])
    return lines[0]


def start(*args, cwd=None, **more):
    """Starts trawl without waiting; processes that still run at the test's end are killed."""
    process = subprocess.Popen([TRAWL, *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, **more)
    started.append(process)
    return process


def wait_for(condition, process=None, timeout=PATIENCE_S):
    """Waits until condition() holds, and returns what it returned: what is used afterwards is then read once. Nothing is said of
    how long that takes, nor of what has happened since. The process must not end before."""
    deadline = time.monotonic() + timeout
    while True:
        over = process is not None and process.poll() is not None  # asked first: what it did last counts
        found = condition()
        if found:
            return found
        assert not over, "ended early: %r" % (process.communicate(),)
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def end(process, number=None, code=0):
    """Waits for a process, after this signal if there is one; its exit code must be `code`. Returns stdout, stderr."""
    if number is not None:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, "exit code %d, not %d\nstdout: %s\nstderr: %s" % (process.returncode, code, (out or "")[-2000:], (err or "")[-2000:])
    return out, err


def kill(pid, number=signal.SIGKILL):
    """Of a process that may just have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def daemon(store, *args, **more):
    """A daemon that answers: its socket may be an old one, or not listen yet."""
    process = start("daemon", "--store", store, *args, **more)

    def answers():
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(store) + ".sock") == 0
    wait_for(answers, process)
    return process


def free_port():
    """A port below the system's range of ephemeral ports, so that no connection takes it before the server starts, or starts again."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.SystemRandom().sample(range(first // 2, first), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def communicate_watched(process, look):
    """The output of a process until it ends; look() is called repeatedly meanwhile, and its OSError is ignored."""
    def watch():
        while process.poll() is None:
            with contextlib.suppress(OSError):
                look()
            time.sleep(0.02)
    watcher = threading.Thread(target=watch)
    watcher.start()
    said = process.communicate(timeout=PATIENCE_S)
    watcher.join()
    return said


def children(pid):
    """Child processes of pid."""
    try:
        return [int(n) for n in pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def has_signal(pid, number, *lists):
    """Is the signal in one of these lists of the process: SigPnd, ShdPnd (pending), SigCgt (caught)?"""
    lines = pathlib.Path("/proc/%d/status" % pid).read_text().splitlines()
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in lines if line.split(":")[0] in lists)


def is_gone(pid):
    """Has the process ended? A zombie has."""
    try:
        return pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def threads(pid):
    """The words after the name in /proc/PID/task/*/stat: the first one is the state."""
    texts = []
    for path in pathlib.Path("/proc/%d/task" % pid).glob("*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            texts.append(path.read_text().rsplit(")", 1)[1].split())
    return texts


def trials_now(store, name="a"):
    """Trials of a study that may not exist yet, read while a sweep runs."""
    done = subprocess.run([TRAWL, "show", name, "--store", str(store), "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)["trials"] if done.returncode == 0 else []


def running(store, name="a"):
    return [t for t in trials_now(store, name) if t["state"] == "running"]


def n_done(store, name="a"):
    return sum(t["state"] == "done" for t in trials_now(store, name))


def reader(store):
    """A connection of SQLite itself, for reading. The log that a killed process left in the middle of its recovery needs one that writes."""
    db = sqlite3.connect("file:%s?mode=ro" % store, uri=True, timeout=PATIENCE_S)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as why:
        db.close()
        if "readonly" not in str(why):
            raise
        db = sqlite3.connect("file:%s?mode=rw" % store, uri=True, timeout=PATIENCE_S)
    return db


def rows(store, sql, *values):
    """What SQLite itself reads; [] while there is no store, or no such table yet."""
    try:
        with contextlib.closing(reader(store)) as db:
            return db.execute(sql, values).fetchall()
    except sqlite3.OperationalError as why:
        if not str(why).startswith(("no such table", "unable to open")):
            raise
        return []


def change(store, sql, *values):
    """Changes a store as no Trawl does, its finished trials too."""
    with contextlib.closing(sqlite3.connect(store, timeout=PATIENCE_S)) as db, db:
        db.execute("DROP TRIGGER IF EXISTS trial_finished_is_final")
        db.execute(sql, values)


def write(folder, name, text):
    path = pathlib.Path(folder, name)
    path.write_text(text)
    return path


def gated(folder, **keys):
    """A config of a sweep, with these keys, whose trials end only after open_gate(folder): whatever a test does to them before that finds
    them running, however fast or busy the machine is. While the gate is shut a trial takes 1,000 s, longer than a test waits, yet it
    reports and obeys signals; what it learns does not depend on the gate."""
    run("env", "new", "apples", cwd=folder)
    header = folder / "apples.h"
    text = header.read_text()
    equal(text.count(STEP), 1)
    header.write_text(text.replace(STEP, GATE % (folder / "gate")))
    run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    return (TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % (folder / "apples.so"))
            .replace("total_timesteps = 4096", "total_timesteps = 1000000\nlog_interval_s = 0.1")
            .replace("method = sobol\n", "".join("%s = %s\n" % row for row in {"method": "sobol", "checkpoint_interval_s": 0, **keys}.items())))


def open_gate(folder):
    (folder / "gate").touch()


def listed(store):
    """The first study of `trawl ls`."""
    return json.loads(run("ls", "--store", store, "--json")[0])[0]


def show(store, name="a"):
    return json.loads(run("show", name, "--store", store, "--json")[0])


def equal(a, b):
    assert a == b, "%r is not %r" % (a, b)


def main(module):
    tests = [(name, f) for name, f in vars(module).items() if name.startswith("test_") and callable(f)]
    known, asked = {name for name, _ in tests}, set(sys.argv[2:])
    left_out = {word[1:] for word in asked if word.startswith("-")}
    wanted = {word for word in asked if not word.startswith("-")}
    if (wanted | left_out) - known:
        sys.exit("no test %s; there are: %s" % (" ".join(sorted((wanted | left_out) - known)), " ".join(sorted(known))))
    tests = [(name, f) for name, f in tests if name in (wanted or known) - left_out]
    print("1..%d" % len(tests), flush=True)
    failed = 0
    for i, (name, f) in enumerate(tests, 1):
        folder = tempfile.mkdtemp(prefix="trawl-e2e-")
        title = name[5:].replace("_", " ")
        begin = time.monotonic()
        try:
            getattr(module, "before_each", lambda: None)()
            f(pathlib.Path(folder))
            print("ok %d - %s" % (i, title), flush=True)
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (i, title, reason), flush=True)
        except Exception:
            failed += 1
            print("not ok %d - %s" % (i, title))
            print("".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="", flush=True)
        finally:
            for process in started:  # a failed test leaves no process to the next ones
                if process.poll() is None:
                    process.kill()
                    process.wait()
            started.clear()
            print("# %.1f s" % (time.monotonic() - begin), flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)
