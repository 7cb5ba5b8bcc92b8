"""The controller under faults: each write, read, open, send, fsync, allocation and start of a process fails once; a full and a slow disk, a
wall clock that jumps, a machine that sleeps. Afterwards every finished trial is in the store once, and --resume continues.

TRAWL_FAULT_TRIES: number of calls of each kind that fail (30). "sites", as in the nightly run: every write, sync and start of a
process, and of each place in the program that allocates (call_sites.h) the first, a middle and the last call. "all": every
allocation too, which takes hours.
"""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import tap
from asking import OUTSIDE, Server, submit
from tap import TINY_SWEEP, end, equal, run, show, start, trials_now, wait_for, write

TRIES = os.environ.get("TRAWL_FAULT_TRIES", "30")
N_TRIALS = 4


def shim():
    path = os.environ.get("TRAWL_FAULTY", "")
    if not os.path.exists(path):
        raise tap.Skip("the library to preload is not built")
    return path


def sweep(folder, config, store, fault, name="a", trials=N_TRIALS):
    """A sweep under a fault. Returns its exit code, its output and the counts of calls."""
    count = folder / "count"
    count.unlink(missing_ok=True)
    where = ["--resume", name] if has_study(store, name) else [str(config), "--name", name]
    done = subprocess.run([tap.TRAWL, "sweep", *where, "--store", str(store), "--trials", str(trials), "-q"],
                          capture_output=True, text=True, timeout=tap.PATIENCE_S,
                          env={**os.environ, "LD_PRELOAD": shim(), "FAULTY": fault, "FAULTY_COUNT": str(count)})
    return done.returncode, done.stderr, count.read_text() if count.exists() else ""


@contextlib.contextmanager
def reading(store):
    """The store as SQLite itself reads it; None when it has no tables yet. The file must not be damaged."""
    if not store.exists() or store.stat().st_size == 0:
        yield None
        return
    db = tap.reader(store)
    try:
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trial'").fetchone()
        yield db if there else None
    finally:
        db.close()


def has_study(store, name):
    with reading(store) as db:
        return db is not None and db.execute("SELECT 1 FROM study WHERE name = ?", (name,)).fetchone() is not None


def finished(store):
    """Its finished rows with every column."""
    with reading(store) as db:
        if db is None:
            return {}
        equal(db.execute("SELECT number FROM trial GROUP BY study_id, number HAVING count(*) > 1").fetchall(), [])
        return {r[0]: r for r in db.execute("SELECT * FROM trial WHERE state IN ('done', 'stopped', 'failed')")}


def numbers(store):
    with reading(store) as db:
        return [n for (n,) in db.execute("SELECT number FROM trial ORDER BY number")]


def remove(store):
    for path in store.parent.glob(store.name + "*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def what_was_asked(store):
    """Values that a fault must not change: the study's settings, and each trial's settings and, when it is done, its result."""
    with reading(store) as db:
        return (db.execute("SELECT name, method, metric, direction, seed, space, config, priority FROM study").fetchall(),
                db.execute("SELECT number, params, seed, config, iif(state = 'done', score, 0), iif(state = 'done', env_steps, 0) "
                           "FROM trial WHERE state <> 'failed' ORDER BY number").fetchall())


class Faults:
    """Sweeps to `trials` trials of a study that has `begun` trials already (0: the sweep makes the store), each with one fault."""

    def __init__(self, folder, kind, begun, trials):
        self.folder, self.kind, self.begun, self.trials = folder, kind, begun, trials
        self.config = write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmax_failures = 0").replace(
            "total_timesteps = 4096", "total_timesteps = 512"))
        self.before_all = folder / "before.db"
        if begun > 0:
            run("sweep", self.config, "--store", self.before_all, "--name", "a", "--trials", begun, "-q")
        self.n_ended, self.n_hit = 0, 0

    def begin(self, name):
        store = self.folder / name
        if self.begun > 0:
            shutil.copy(self.before_all, store)
        return store

    def count(self):
        """A sweep without a fault that counts the calls. Returns the counts."""
        store = self.begin("count.db")
        code, _, counted = sweep(self.folder, self.config, store, "site:0:0" if self.kind == "site" else self.kind + ":0",
                                 trials=self.trials)
        equal(code, 0)
        assert counted, "nothing of this kind is ever called"
        self.right = what_was_asked(store)
        remove(store)
        return counted

    def fail_once(self, fault, is_hit):
        """A pair of sweeps: one with the fault, one that continues it. is_hit(counted): did the fault happen?"""
        store = self.begin("fault.db")
        try:
            code, err, counted = sweep(self.folder, self.config, store, fault, trials=self.trials)
            assert code in (0, 1, 2), "ended by signal %d: %s" % (-code, err)
            assert code == 0 or tap.errors(err), "failed without a word: %s" % err
            self.n_ended += code != 0
            self.n_hit += is_hit(counted)
            before = finished(store)
            assert code != 0 or len(before) == self.trials, "all is well, it says, with %d trials: %s" % (len(before), err)
            code, err, _ = sweep(self.folder, self.config, store, "none:0", trials=self.trials)  # the fault is over
            assert code == 0, "the next sweep ended with %d: %s" % (code, err)
            after = finished(store)
            for key, row in before.items():
                equal(after[key], row)
            equal(numbers(store), list(range(self.trials)))
            study, rows = what_was_asked(store)
            equal(study, self.right[0])
            for row in rows:
                assert row in self.right[1], "%r is not as without a fault: %r" % (row, self.right[1][row[0]])
        except subprocess.TimeoutExpired as hangs:
            raise AssertionError("it hangs: %r" % hangs.stderr) from hangs
        finally:
            remove(store)

    def go_through(self, wanted, what):
        """wanted: (fault, is_hit, where). Tries all of them, also after a defect."""
        found, begin = [], time.monotonic()
        for k, (fault, is_hit, where) in enumerate(wanted):
            try:
                self.fail_once(fault, is_hit)
            except AssertionError as defect:
                found.append("%s: %s%s" % (fault, defect, where()))
                print("# DEFECT " + found[-1].replace("\n", "\n# "), flush=True)
            if k % 500 == 499:
                print("# %s: %d of %d, %d defects" % (self.kind, k + 1, len(wanted), len(found)), flush=True)
        print("# %s: %s; %d failed in turn (%d tried), %d sweeps ended with a message, %d continued; %d defects; %.0f s" % (
            "a study that goes on" if self.begun > 0 else "a new store", what, self.n_hit, len(wanted), self.n_ended,
            len(wanted) - self.n_ended - len(found), len(found), time.monotonic() - begin))
        assert not found, "%d defects:\n%s" % (len(found), "\n".join(found[:20]))
        assert self.n_hit > 0


def every_call_fails_once(folder, kind, begun, trials):
    faults = Faults(folder, kind, begun, trials)
    total = int(faults.count())
    wanted = range(1, total + 1)
    if TRIES.isdigit() and total > int(TRIES):
        wanted = sorted(random.Random(5).sample(wanted, int(TRIES)))
    faults.go_through([("%s:%d" % (kind, nth), lambda counted, nth=nth: int(counted or 0) >= nth, lambda: "") for nth in wanted],
                      "%d calls of %s" % (total, kind))


def read_sites(counted):
    """{site: (calls, frames)} in the order of the first calls."""
    rows = [line.split() for line in counted.splitlines()]
    return {row[0]: (int(row[1]), row[2:]) for row in rows}


def name_frames(frames):
    """The frames as functions, where addr2line finds them."""
    text = ""
    for frame in frames:
        path, _, offset = frame.rpartition("+")
        path = tap.TRAWL if path == "trawl" else path
        try:
            name = subprocess.run(["addr2line", "-f", "-s", "-e", path, hex(int(offset, 16) - 1)], capture_output=True,
                                  text=True).stdout.split("\n")
        except FileNotFoundError:
            name = ["?", ""]
        text += "\n    %s %s %s" % (frame, name[0], name[1])
    return text


def every_site_fails(folder, begun, trials):
    """Each place that allocates: its first, a middle and its last call; only some places unless TRIES is "sites"."""
    faults = Faults(folder, "site", begun, trials)
    sites = read_sites(faults.count())
    if TRIES == "sites":
        calls = [(site, nth) for site, (n, _) in sites.items() for nth in sorted({1, (n + 1) // 2, n})]
    else:
        dice = random.Random(5)
        calls = [(site, dice.randint(1, sites[site][0])) for site in dice.sample(list(sites), min(int(TRIES), len(sites)))]

    def hit(site, nth):
        return lambda counted: read_sites(counted or "").get(site, (0, []))[0] >= nth

    faults.go_through([("site:%s:%d" % call, hit(*call), lambda site=call[0]: name_frames(sites[site][1])) for call in calls],
                      "%d calls that allocate at %d places" % (sum(n for n, _ in sites.values()), len(sites)))


def allocations_fail(folder, begun, trials):
    if TRIES == "all":
        every_call_fails_once(folder, "malloc", begun, trials)
    else:
        every_site_fails(folder, begun, trials)


def test_every_write_fails_once(folder):
    every_call_fails_once(folder, "write", 0, N_TRIALS)


def test_every_fsync_fails_once(folder):
    every_call_fails_once(folder, "fsync", 0, N_TRIALS)


def test_every_read_fails_once(folder):
    every_call_fails_once(folder, "read", 2, N_TRIALS)


def test_every_open_fails_once(folder):
    every_call_fails_once(folder, "open", 2, N_TRIALS)


def test_every_send_fails_once(folder):
    every_call_fails_once(folder, "send", 2, N_TRIALS)


def test_every_start_of_a_process_fails_once(folder):
    every_call_fails_once(folder, "fork", 0, N_TRIALS)


def test_every_allocation_fails_once(folder):
    allocations_fail(folder, 2, N_TRIALS)


def test_every_allocation_of_a_new_store_fails_once(folder):
    allocations_fail(folder, 0, 1)


def test_a_slow_disk(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    equal(sweep(folder, config, store, "slow:15")[0], 0)
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * N_TRIALS)


def test_a_clock_that_jumps(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    code, _, n = sweep(folder, config, store, "clock:86400")
    equal(code, 0)
    assert int(n) > 10
    trials = show(store, "a")["trials"]
    equal([t["state"] for t in trials], ["done"] * N_TRIALS)
    assert all(0 < t["cost_s"] < 3600 for t in trials), trials  # durations come from another clock


def test_clients_under_a_clock_that_jumps(folder):
    """A result without a cost, and the budget of those that train, go by the other clock too."""
    store = folder / "s.db"
    env = {**os.environ, "LD_PRELOAD": shim(), "FAULTY": "clock:86400", "FAULTY_COUNT": str(folder / "count")}
    controller = tap.daemon(store, env=env)
    server = Server(store)
    submit(folder, store, OUTSIDE.replace("[sweep]\n", "[sweep]\nbudget = 1h\n"), trials=4)
    for _ in range(4):
        t = server.ask("c")
        for step in (1, 2, 3):
            equal(server.report(t, step=step, metrics={"score": step})["stop"], False)
        server.tell(t, score=1)
    trials = show(store, "a")["trials"]
    equal([t["state"] for t in trials], ["done"] * 4)
    assert all(0 <= t["cost_s"] < 3600 for t in trials), trials
    server.end()
    end(controller, signal.SIGTERM)


def test_a_suspension_costs_no_trial_of_a_node(folder):
    """The lease of a node is over when the machine wakes up, which neither the node nor the controller could do anything about."""
    store, spool, asleep = folder / "s.db", folder / "spool", folder / "asleep"
    env = {**os.environ, "LD_PRELOAD": shim(), "FAULTY": "sleep:36000", "FAULTY_ASLEEP": str(asleep)}
    text = tap.gated(folder, lease_s=600).replace("log_interval_s = 0.1", "log_interval_s = 1000")  # it only gives signs of life
    controller = tap.daemon(store, "--devices", "none", env=env)
    submit(folder, store, text, trials=1)
    node = start("node", "--store", store, "--devices", "cpu", "--spool", spool, env=env)
    until, = wait_for(lambda: tap.rows(store, "SELECT until_ms FROM lease"), node)[0]
    asleep.touch()
    wait_for(lambda: tap.rows(store, "SELECT 1 FROM lease WHERE until_ms > ? OR state != 'open'", until + 30000000), node)
    tap.open_gate(folder)
    wait_for(lambda: tap.rows(store, "SELECT 1 FROM study WHERE state = 'ended'"), controller)
    equal(tap.rows(store, "SELECT state, attempt FROM lease"), [("reported", 1)])
    end(node, signal.SIGTERM, 130)
    end(controller, signal.SIGTERM)


def cut_the_power(store, dice):
    """The store's files keep their synced bytes, and of the later writes nothing or any part, in blocks of a disk."""
    lucky = dice.choice((0, 0, 0.5))
    for path in (store, store.with_name(store.name + "-wal")):
        synced = path.with_name(path.name + ".synced")
        old = synced.read_bytes() if synced.exists() else b""
        new = path.read_bytes() if path.exists() else b""
        blocks = [(new if dice.random() < lucky else old)[at:at + 4096] for at in range(0, max(len(new), len(old)), 4096)]
        while blocks and not blocks[-1]:
            blocks.pop()
        path.write_bytes(b"".join(b.ljust(4096, b"\0") for b in blocks[:-1]) + (blocks[-1] if blocks else b""))
        synced.write_bytes(path.read_bytes())
        if not blocks:
            path.unlink()
    store.with_name(store.name + "-shm").unlink(missing_ok=True)


def told_done(words):
    return {int(n) for n in re.findall(r"trial (\d+) done .*\n", words.read_text())}


def test_the_power_fails(folder):
    """Every trial that was reported as done is in the store, although unsynced writes are gone."""
    config, store = write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmax_failures = 0")), folder / "s.db"
    dice, told, n_cuts = random.Random(5), set(), 5 if TRIES.isdigit() else 100
    for cut in range(n_cuts):
        where = ["--resume", "a"] if has_study(store, "a") else [str(config), "--name", "a"]
        with open(folder / "words", "w") as words:
            process = subprocess.Popen([tap.TRAWL, "sweep", *where, "--store", str(store), "--trials", "100000"], stderr=words,
                                       env={**os.environ, "LD_PRELOAD": shim(), "FAULTY": "power:0"})
        n = dice.randint(1, 20)
        wait_for(lambda: len(told_done(folder / "words")) >= n, process)
        end(process, signal.SIGKILL, -9)
        told |= told_done(folder / "words")
        cut_the_power(store, dice)
        done = {row[2] for row in finished(store).values()}
        assert told <= done, "cut %d: trials %s were told to be done and are lost" % (cut, sorted(told - done))
    total = max(max(done), len(trials_now(store, "a"))) + 3  # more than there are, with those that were begun
    run("sweep", "--resume", "a", "--store", store, "--trials", total, "-q")
    equal(numbers(store), list(range(total)))
    print("# %d cuts, %d trials done and told, none lost" % (n_cuts, len(told)))
    assert len(told) > n_cuts


def small_disk(folder):
    """A file system of 1 MB; `umount -l` ends it."""
    if os.geteuid() != 0:
        raise tap.Skip("a small file system needs root")
    small = folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True).returncode:
        raise tap.Skip("no file system can be mounted here")
    return small


def test_a_full_disk(folder):
    """The sweep waits for space and loses nothing; a signal meanwhile ends it with the results on the disk."""
    small, words = small_disk(folder), folder / "words"
    config, store, elsewhere = write(folder, "s.ini", TINY_SWEEP), small / "s.db", folder / "s.db"
    (small / "ballast").write_bytes(b"x" * (540 << 10))
    with open(words, "w") as out:
        process = subprocess.Popen([tap.TRAWL, "sweep", str(config), "--store", str(store), "--name", "a", "--trials", "100000",
                                    "-q"], stdout=subprocess.DEVNULL, stderr=out)
    try:
        wait_for(lambda: "the disk is full" in words.read_text(), process)
        before = finished(store)
        assert before  # how many fit depends on how often a slow machine reports
        equal(json.loads(run("ls", "--store", store, "--json")[0])[0]["now"], "running")
        tap.fails("pause", "a", "--store", store, code=1, says="disk is full, and the controller waits for space; nothing was changed")
        (small / "ballast").unlink()
        wait_for(lambda: "can be written again" in words.read_text(), process)
        wait_for(lambda: words.read_text().count("the disk is full") >= 2, process)
        later = finished(store)
        assert len(later) > len(before), (len(before), len(later))
        process.send_signal(signal.SIGINT)
        process.wait(tap.PATIENCE_S)
        equal(process.returncode, 1)
        said = tap.errors(words.read_text())
        assert len(said) == 1 and "disk is full" in said[0] and "trawl sweep --resume a --store" in said[0], said
        for path in small.glob("s.db*"):
            if path.is_file():
                shutil.copy(path, folder)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        subprocess.run(["umount", "-l", str(small)])
    trials = show(elsewhere, "a")["trials"]
    equal({t["attempt"] for t in trials if t["state"] == "done"}, {1})  # also those that waited: none ran again
    total = len(trials) + 3
    run("sweep", "--resume", "a", "--store", elsewhere, "--trials", total, "-q")
    after = finished(elsewhere)
    for key, row in [*before.items(), *later.items()]:
        equal(after[key], row)
    equal(len(after), total)
    print("# the disk was full after %d trials and after %d" % (len(before), len(later)))


def test_a_network_file_system_is_named(folder):
    """NFS refuses nothing, but its locks do not exclude another machine: the user of a store there is warned."""
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    env = {**os.environ, "LD_PRELOAD": shim(), "FAULTY_FS": "0x6969"}
    _, err = run("sweep", config, "--store", store, "--name", "a", "--trials", 2, "-q", env=env)
    equal(err.count("s.db is on NFS: the locks"), 1)
    assert "NFS, whose locks" in run("doctor", "--store", store, env=env)[0]
    _, err = run("sweep", "--resume", "a", "--store", store, "--trials", 3, "-q")
    assert "NFS" not in err, err
    assert "store_place" not in run("doctor", "--store", store)[0]


def test_a_quota_is_a_full_disk(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    _, _, n = sweep(folder, config, folder / "count.db", "quota:0")
    for at in (0.6, 0.7, 0.8, 0.9):  # the first third is the beginning, which does not wait
        remove(store)
        code, said, _ = sweep(folder, config, store, "quota:%d" % (at * int(n)))
        assert (code, len(finished(store))) == (0, N_TRIALS), said


def test_a_limit_of_file_sizes(folder):
    """Waiting for space would not help: the sweep names the limit to raise, and continues after that."""
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400 << 10, resource.RLIM_INFINITY))

    done = subprocess.run([tap.TRAWL, "sweep", str(config), "--store", str(store), "--name", "a", "--trials", "100000", "-q"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit, timeout=tap.PATIENCE_S)
    equal(done.returncode, 1)
    assert "raise the limit (ulimit -f)" in done.stderr and "trawl sweep --resume a --store" in done.stderr, done.stderr
    before = finished(store)
    run("sweep", "--resume", "a", "--store", store, "--trials", len(before) + 5, "-q")
    after = finished(store)
    for key, row in before.items():
        equal(after[key], row)
    equal(len(after), len(before) + 5)


def test_a_daemon_begins_on_a_full_disk(folder):
    """A full disk does not lose the trials that ran when the last daemon was killed."""
    small, words = small_disk(folder), folder / "words"
    config, store = write(folder, "s.ini", TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")), small / "s.db"
    daemon = None

    def attempts():
        return [(t["state"], t["attempt"]) for t in trials_now(store)]

    try:
        daemon = tap.daemon(store)
        watcher = start("sweep", config, "--store", store, "--name", "a", "-q")
        wait_for(lambda: attempts() == [("running", 1)], daemon)
        end(daemon, signal.SIGKILL, -9)
        end(watcher, code=1)
        with open(small / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(b"x" * 4096)
        with open(words, "w") as out:
            daemon = subprocess.Popen([tap.TRAWL, "daemon", "--store", str(store)], stderr=out)
        wait_for(lambda: "the disk is full" in words.read_text(), daemon)
        tap.fails("pause", "a", "--store", store, code=1, says="the controller waits for space")
        (small / "ballast").unlink()
        wait_for(lambda: attempts() == [("running", 2)], daemon)
        daemon.send_signal(signal.SIGTERM)
        equal(daemon.wait(tap.PATIENCE_S), 0)
        assert "left alone" not in words.read_text(), words.read_text()
    finally:
        if daemon is not None and daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        subprocess.run(["umount", "-l", str(small)])


def test_the_machine_sleeps(folder):
    """Stopped and continued, as by suspend and resume: no process counts another one as dead."""
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", tap.gated(folder)), "--store", store, "--name", "a", "--trials", 2)
    wait_for(lambda: tap.rows(store, "SELECT 1 FROM metric"), process)
    everybody = [process.pid, *tap.children(process.pid)]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(6)
    for pid in reversed(everybody):
        os.kill(pid, signal.SIGCONT)
    tap.open_gate(folder)
    end(process)
    equal([(t["state"], t["attempt"]) for t in show(store, "a")["trials"]], [("done", 1)] * 2)
