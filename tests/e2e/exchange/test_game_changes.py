"""Libraries of games that are built again under a training, a sweep, a daemon or a node; and what games fork."""
import json
import os
import shutil
import signal
import subprocess

import tap
from tap import equal, show, write
from test_own_games import fails, new_game, run, said


def build_again(folder):
    """Another build of the game."""
    (folder / "apples.h").write_text((folder / "apples.h").read_text().replace("-1.0f;", "-0.5f;"))
    run("env", "build", "apples.h", cwd=folder)


def test_a_changed_library_is_refused(folder):
    library = new_game(folder)
    config, _ = run("train", library, "--print-config", "--train.total_timesteps", "20k")
    write(folder, "c.ini", config)
    run("train", folder / "c.ini", "-q")
    build_again(folder)
    fails("has changed since", "train", folder / "c.ini", code=1)
    run("train", folder / "c.ini", "-q", "--env.hash", "")


def test_a_library_that_changes_under_a_sweep_pauses_it(folder):
    """No trial fails for it; with the old build the study continues."""
    library, store = new_game(folder), folder / "s.db"
    config = write(folder, "s.ini", tap.SPACE + "[env]\nname = ./apples.so\n[train]\ndevice = cpu\ntotal_timesteps = 200k\n")
    process = tap.start("sweep", config, "--store", store, "--name", "a", "--trials", 100000, "--sweep.method", "sobol", "-q")
    tap.wait_for(lambda: tap.n_done(store) > 0, process)
    shutil.copy(library, folder / "old.so")
    build_again(folder)
    err = process.communicate(timeout=tap.PATIENCE_S)[1]
    equal(process.returncode, 1)
    says = ("apples.so has changed since", "Bring that build back, or start a new", "--resume a")
    assert all(text in err for text in says) and "open its device" not in err, err
    study = tap.listed(store)
    equal((study["state"], study["end_rule"]), ("paused", "error"))
    assert says[0] in run("show", "a", "--store", store)[0]
    trials = show(store)["trials"]
    equal({t["state"] for t in trials}, {"done", "queued"})
    message = fails(says[0], "sweep", "--resume", "a", "--store", store, code=1)
    assert says[1] in message and "open its device" not in message, message
    equal((tap.listed(store)["state"], show(store)["trials"]), ("paused", trials))
    os.replace(folder / "old.so", library)
    process = tap.start("sweep", "--resume", "a", "--store", store, "-q")
    done = tap.n_done(store)
    tap.wait_for(lambda: tap.n_done(store) > done, process)
    tap.end(process, signal.SIGINT, 130)
    equal({t["state"] for t in show(store)["trials"]} - {"done", "queued"}, set())


def long_study(folder, game, store, name):
    """Hands a daemon a study that does not end by itself."""
    config = write(folder, name + ".ini", tap.SPACE + "[env]\nname = %s\n[train]\ndevice = cpu\ntotal_timesteps = 20k\n" % game)
    watcher = tap.start("sweep", config, "--store", store, "--name", name, "--trials", 100000, "--sweep.method", "sobol", "-q")
    tap.wait_for(lambda: any(t["state"] != "queued" for t in tap.trials_now(store, name)), watcher)
    tap.end(watcher, signal.SIGINT, 130)


def test_a_changed_library_concerns_its_study_alone(folder):
    """A daemon whose workers begin with it pauses that study, and trains the others on the same device."""
    store, places = folder / "s.db", ("--devices", "cpu", "--log", folder / "d.log")
    new_game(folder)
    daemon = tap.daemon(store, *places)
    for name, game in (("a", "./apples.so"), ("b", "squared")):
        long_study(folder, game, store, name)
    tap.end(daemon, signal.SIGKILL, -9)
    build_again(folder)
    done = tap.n_done(store, "b")
    daemon = tap.daemon(store, *places)
    tap.wait_for(lambda: tap.n_done(store, "b") > done + 1, daemon)
    study = next(s for s in json.loads(run("ls", "--store", store, "--json")[0]) if s["name"] == "a")
    equal((study["state"], study["end_rule"]), ("paused", "error"))
    assert "apples.so has changed since" in run("show", "a", "--store", store)[0]
    equal({t["state"] for t in tap.trials_now(store, "a")} - {"done", "queued"}, set())
    tap.end(daemon, signal.SIGTERM, 0)


def test_a_library_that_is_gone_pauses_its_study_alone(folder):
    """A daemon continues the others; with the library back the study continues."""
    store = folder / "s.db"
    library = new_game(folder)
    daemon = tap.daemon(store, "--devices", "cpu", "--log", folder / "d.log")
    for name, game in (("a", "./apples.so"), ("b", "squared")):
        long_study(folder, game, store, name)
    os.replace(library, folder / "away.so")
    tap.wait_for(lambda: '"paused"' in run("ls", "--store", store, "--json")[0], daemon)
    assert "paused (error): study a:2: no library of a game" in run("show", "a", "--store", store)[0]
    done = tap.n_done(store, "b")
    tap.wait_for(lambda: tap.n_done(store, "b") > done + 1, daemon)
    os.replace(folder / "away.so", library)
    done = tap.n_done(store, "a")
    run("continue", "a", "--store", store)
    tap.wait_for(lambda: tap.n_done(store, "a") > done, daemon)
    tap.end(daemon, signal.SIGTERM, 0)


def test_a_library_that_is_overwritten_in_place_costs_no_trial(folder):
    """Its running trial crashes, since the file is mapped: it goes back into the queue, and the study is paused."""
    store, library = folder / "s.db", folder / "apples.so"
    config = write(folder, "s.ini", tap.gated(folder))
    shutil.copy(library, folder / "old.so")
    process = tap.start("sweep", config, "--store", store, "--name", "a", "--trials", 1, "--devices", "cpu", "-q")
    tap.wait_for(lambda: tap.rows(store, "SELECT 1 FROM metric"), process)  # it plays
    library.write_bytes(b"")  # what cp does before it writes
    tap.end(process, code=1)
    study = tap.listed(store)
    equal((study["state"], study["end_rule"]), ("paused", "error"))
    equal([(t["state"], t["attempt"]) for t in show(store)["trials"]], [("queued", 1)])
    shutil.copy(folder / "old.so", library)
    tap.open_gate(folder)
    run("sweep", "--resume", "a", "--store", store, "-q")
    equal([(t["state"], t["attempt"]) for t in show(store)["trials"]], [("done", 2)])


def test_a_branch_whose_library_is_gone_pauses_its_study(folder):
    """Its config cannot be made; the run that it is of goes back into the queue, and the daemon continues."""
    store = folder / "s.db"
    text = tap.gated(folder, branches=3).replace("[train]", "[train]\ndecay_steps = 100000")
    config = write(folder, "a.ini", text + tap.space("train.total_timesteps: min = 262144; max = 1048576; distribution = log"))
    daemon = tap.daemon(store, "--devices", "cpu", "--log", folder / "d.log")
    watcher = tap.start("sweep", config, "--store", store, "--name", "a", "--trials", 2, "-q")
    tap.wait_for(lambda: tap.running(store), watcher)
    os.remove(folder / "apples.so")
    tap.open_gate(folder)
    tap.wait_for(lambda: tap.listed(store)["state"] == "paused", daemon)
    assert "no library of a game" in run("show", "a", "--store", store)[0]
    equal({t["state"] for t in tap.trials_now(store)}, {"queued"})
    tap.end(daemon, signal.SIGTERM, 0)


def start_node(folder, store):
    with open(folder / "node.log", "w", encoding="utf-8") as log:
        node = subprocess.Popen([tap.TRAWL, "node", "--store", str(store), "--devices", "cpu", "--spool", str(folder / "spool")],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    tap.started.append(node)
    return node


def test_a_node_leaves_a_study_whose_library_changed(folder):
    """Its trials go back into the queue; those of another study are trained."""
    store = folder / "s.db"
    new_game(folder)
    daemon = tap.daemon(store, "--devices", "none", "--log", folder / "d.log")
    node = start_node(folder, store)
    for name, game in (("a", "./apples.so"), ("b", "squared")):
        long_study(folder, game, store, name)
    tap.wait_for(lambda: tap.n_done(store, "a") > 0, node)
    build_again(folder)
    tap.wait_for(lambda: "takes none of its trials" in (folder / "node.log").read_text(), node)
    assert "a: " in (folder / "node.log").read_text() and "apples.so has changed since" in (folder / "node.log").read_text()
    done = tap.n_done(store, "b")
    tap.wait_for(lambda: tap.n_done(store, "b") > done + 1, node)
    equal({t["state"] for t in tap.trials_now(store, "a")} - {"done", "queued"}, set())
    tap.end(node, signal.SIGTERM, 130)
    tap.end(daemon, signal.SIGTERM, 0)


def test_a_node_leaves_a_study_whose_library_is_not_there(folder):
    """Whether it begins with that study or meets it later, and whether the library is gone or of another build."""
    store, library, log = folder / "s.db", new_game(folder), folder / "node.log"
    for name, game in (("a", "./apples.so"), ("b", "squared")):
        config = write(folder, name + ".ini", tap.SPACE + "[env]\nname = %s\n[train]\ndevice = cpu\ntotal_timesteps = 20k\n" % game)
        run("sweep", config, "--store", store, "--name", name, "--trials", 1, "--sweep.method", "sobol", "-q")

    def trains_b(node):
        done = tap.n_done(store, "b")
        run("confirm", "b", 0, "--seeds", 1, "--store", store)
        tap.wait_for(lambda: tap.n_done(store, "b") > done, node)

    run("confirm", "a", 0, "--seeds", 1, "--store", store)
    for says, lose in (("no library of a game", lambda: os.replace(library, folder / "old.so")), ("has changed since", lambda: build_again(folder))):
        lose()
        node = start_node(folder, store)
        tap.wait_for(lambda: "the node begins with another study" in log.read_text(), node)
        assert says in log.read_text(), log.read_text()
        trains_b(node)
        tap.end(node, signal.SIGTERM, 130)
    run("pause", "a", "--store", store)
    os.remove(library)
    node = start_node(folder, store)
    trains_b(node)
    run("continue", "a", "--store", store)
    tap.wait_for(lambda: "takes none of its trials" in log.read_text(), node)
    trains_b(node)
    tap.end(node, signal.SIGTERM, 130)
    equal([t["state"] for t in tap.trials_now(store, "a")], ["done", "queued"])
    os.replace(folder / "old.so", library)
    node = start_node(folder, store)
    tap.wait_for(lambda: tap.n_done(store, "a") == 2, node)
    tap.end(node, signal.SIGTERM, 130)


def forking_game(folder, name, then="", forked_does="for (;;) pause();"):
    """Its first step forks a process that leaves the session, and that one a daemon, whose parent ends; it waits for both and does `then`. Files
    are named by their pids."""
    return new_game(folder, name, ("state->apple_y++;", """state->apple_y++;
    {
        extern int fork(void), setsid(void), pause(void), getpid(void), pipe(int *), execve(const char *, char *const *, char *const *);
        extern unsigned alarm(unsigned);
        extern void _exit(int);
        extern long read(int, void *, unsigned long), write(int, const void *, unsigned long);
        static int n;
        int ends[2];
        char c, path[512];
        if (__atomic_fetch_add(&n, 1, 5) == 0 && pipe(ends) == 0) {
            if (fork() == 0) {
                setsid();
                if (fork() == 0 && fork() != 0)
                    _exit(0);
                alarm(600);
                snprintf(path, sizeof path, "%s.%%d.pid", getpid());
                fclose(fopen(path, "w"));
                write(ends[1], "x", 1);
                %s
            }
            read(ends[0], &c, 1);
            read(ends[0], &c, 1);
            %s
        }
    }""" % (folder / name, forked_does, then)))


def forked(folder, name):
    pids = [int(path.name.split(".")[1]) for path in folder.glob(name + ".*.pid")]
    assert len(pids) % 2 == 0 and pids, pids
    return pids


def test_what_a_game_starts_ends_with_its_check(folder):
    """Also what has left its session, whether the game plays on or crashes."""
    for name, then in (("plays", ""), ("crashes", "__builtin_abort();")):
        said("env", "check", forking_game(folder, name, then), "--steps", 50, cwd=folder)
        assert all(map(tap.is_gone, forked(folder, name)))


def test_what_a_game_starts_ends_with_its_training(folder):
    library = forking_game(folder, "forks")
    small = ("--train.total_timesteps", "4096", "--train.total_agents", "32", "--train.horizon", "32", "--train.minibatch_size", "256")
    run("train", library, *small, "-q")
    assert all(map(tap.is_gone, forked(folder, "forks")))
    config = write(folder, "forks.ini", "[env]\nname = %s\n[train]\ntotal_timesteps = 4096\ntotal_agents = 32\nhorizon = 32\n"
                   "minibatch_size = 256\n[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n" % library)
    run("sweep", config, "--store", folder / "forks.db", "--name", "a", "--trials", "2", "--devices", "cpu")
    assert all(map(tap.is_gone, forked(folder, "forks"))) and len(forked(folder, "forks")) > 2


def test_what_a_game_starts_ends_with_a_killed_worker(folder):
    library = forking_game(folder, "forks", "for (;;) pause();")
    config = write(folder, "forks.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % library))
    process = tap.start("sweep", config, "--store", folder / "forks.db", "--name", "a", "--trials", "2", "--devices", "cpu")

    tap.wait_for(lambda: len(list(folder.glob("forks.*.pid"))) == 2, process)
    first = forked(folder, "forks")
    assert not any(map(tap.is_gone, first))
    worker, = tap.children(process.pid)
    tap.kill(worker)
    tap.wait_for(lambda: all(map(tap.is_gone, first)), process)
    tap.wait_for(lambda: len(list(folder.glob("forks.*.pid"))) == 4, process)  # the trial runs again
    tap.end(process, signal.SIGINT, 130)  # kills the worker, whose game does not return
    tap.wait_for(lambda: all(map(tap.is_gone, forked(folder, "forks"))))


def test_what_a_game_starts_ends_with_a_killed_controller(folder):
    """Also where the worker is stopped; what has another environment cannot be found by its mark."""
    for i, number in enumerate((signal.SIGCONT, signal.SIGSTOP)):
        name = "forks%d" % i
        library = forking_game(folder, name, "for (;;) pause();", 'execve("/bin/sleep", (char *[]){"sleep", "600", 0}, (char *[]){0});')
        config = write(folder, name + ".ini", tap.TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % library))
        process = tap.start("sweep", config, "--store", folder / (name + ".db"), "--name", "a", "--trials", "2", "--devices", "cpu")
        tap.wait_for(lambda: len(list(folder.glob(name + ".*.pid"))) == 2, process)
        worker, = tap.children(process.pid)
        all_of_it = [worker, *forked(folder, name)]
        assert not any(map(tap.is_gone, all_of_it))
        tap.kill(worker, number)
        tap.end(process, signal.SIGKILL, -9)
        tap.wait_for(lambda: all(map(tap.is_gone, all_of_it)))


def test_what_a_game_starts_ends_with_a_worker_that_the_game_ends(folder):
    """Nothing of the program's runs in a worker that ends so; its exit code says that all is well."""
    library = forking_game(folder, "ends", "_exit(0);")
    config = write(folder, "ends.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % library))
    fails("ended with exit code 0", "sweep", config, "--store", folder / "ends.db", "--name", "a", "--trials", "1", "--devices", "cpu", code=1)
    tap.wait_for(lambda: all(map(tap.is_gone, forked(folder, "ends"))))


def test_a_game_that_becomes_another_program_costs_its_trial(folder):
    """At once: it was silent for 30 s, three times, and then said to be ended from outside."""
    exec_it = 'state->apple_y++; { extern int execl(const char *, ...); execl("/bin/sleep", "sleep", "600", (char *)0); }'
    library = new_game(folder, "becomes", ("state->apple_y++;", exec_it))
    config = write(folder, "s.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % library))
    fails("its game became another program by exec: /", "sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", "1",
          "--devices", "cpu", code=1)
    trial, = show(folder / "s.db")["trials"]
    equal((trial["state"], trial["attempt"]), ("failed", 1))


def test_what_a_shell_leaves_behind_is_the_users(folder):
    """exec makes the shell's background processes the children of trawl, which did not start them."""
    library = new_game(folder)
    small = "--train.total_timesteps 4096 --train.total_agents 32 --train.horizon 32 --train.minibatch_size 256 -q"
    for words in ("train apples.so " + small, "env check apples.so --steps 50"):
        process = subprocess.Popen(["sh", "-c", "sleep 600 >&- 2>&- & echo $! >pid; exec \"$0\" " + words, tap.TRAWL], cwd=library.parent,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        err = process.communicate(timeout=tap.PATIENCE_S)[1]
        pid = int((library.parent / "pid").read_text())
        alive = not tap.is_gone(pid)
        if alive:
            os.kill(pid, signal.SIGKILL)
        assert process.returncode == 0 and alive, err
