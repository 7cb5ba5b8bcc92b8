"""Checksums for users: every command that shows or uses a damaged result names it; `trawl check` and `trawl backup`."""
import json
import shutil
import signal

from tap import TINY_SWEEP, change, end, equal, fails, n_done, run, show, start, wait_for, write


def make(folder, name="s.db", trials=4):
    store = folder / name
    run("sweep", write(folder, "a.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", trials, "-q")
    return store


def test_every_reader_names_a_damaged_trial(folder):
    store = make(folder)
    change(store, "UPDATE trial SET score = score + 0.25 WHERE number = 2")
    for args in (["ls"], ["ls", "--json"], ["show", "a"], ["show", "a", "--json"], ["show", "a", "--front"],
                 ["report", "a", "-o", folder / "r.html"], ["report", "a", "--format", "csv"],
                 ["export", "a", "--pick", "best"], ["export", "a", "--pick", "trial=2"], ["rerun", "a", "--trial", 2],
                 ["sweep", "--resume", "a", "--trials", 6]):
        fails(*args, "--store", store, code=1, says=["trial 2 of study 'a' is damaged", "trawl check"])
    assert not (folder / "r.html").exists()
    out, err = run("check", store, code=1)
    equal(out, "damaged: trial 2 of study 'a': its row does not fit its checksum\n")
    assert "damaged in 1 place(s); restore a backup" in err, err
    fails("backup", store, folder / "b.db", code=1, says=["not a backup; none was written"])
    equal([p.name for p in folder.glob("b.db*")], [])


def test_a_damaged_study_and_curve(folder):
    store = make(folder)
    whole = folder / "whole.db"
    shutil.copy(store, whole)
    change(store, "UPDATE study SET seed = seed + 4")
    fails("show", "a", "--store", store, code=1, says="study 'a' (id 1) is damaged")
    shutil.copy(whole, store)
    change(store, "UPDATE metric SET value = coalesce(value, 0) + 1 WHERE trial_id = 3 AND name_id = (SELECT min(name_id) FROM metric)")
    out, _ = run("check", store, code=1)
    equal(out, "damaged: trial 2 of study 'a': 1 of its learning curves do not fit their checksums\n")
    show(store, "a")  # which shows no curve


def test_check_counts_what_it_read(folder):
    store = make(folder)
    found = json.loads(run("check", store, "--json")[0])
    equal((found["damaged"], found["studies"]["n"], found["trials"]), (0, 1, {"n": 4, "unchecked": 0}))
    assert found["points"] > 0 and found["curves"]["n"] > 0
    change(store, "UPDATE trial SET checksum = NULL WHERE number < 3")  # as an older Trawl left them
    change(store, "DELETE FROM curve_sum WHERE trial_id = 1")
    change(store, "INSERT INTO lease (trial_id, attempt, client, token, state, given_ms, until_ms) VALUES (1, 1, 'c', 't', 'returned', 1, 1)")
    out, _ = run("check", store)
    assert "s.db is whole" in out and "4  (3 of them unchecked: written before there were checksums)" in out, out
    assert "1  (1 of them unchecked: rewritten when the store came to version 12)" in out, out
    equal(len(show(store, "a")["trials"]), 4)
    fails("check", folder / "none.db", code=1, says="there is no store")
    fails("check", folder / "a b.db", code=1, says="--store '")
    write(folder, "text.db", "no store\n" * 1000)
    fails("check", folder / "text.db", code=1, says="is not a Trawl store")


def test_a_backup_of_a_sweep_that_runs(folder):
    """Many backups while trials end: each is one whole state of the store, and a sweep can continue with it."""
    store = folder / "s.db"
    sweep = start("sweep", write(folder, "a.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 100000, "-q")
    wait_for(lambda: n_done(store) > 3, sweep)
    counts = []
    for k in range(5):
        before = n_done(store)
        _, err = run("backup", store, folder / ("b%d.db" % k))
        assert "checked" in err, err
        counts.append((before, n_done(folder / ("b%d.db" % k))))
    end(sweep, signal.SIGTERM, 130)
    assert all(before <= copied for before, copied in counts), counts
    n = len(show(folder / "b4.db", "a")["trials"])
    run("sweep", "--resume", "a", "--store", folder / "b4.db", "--trials", n + 1, "-q")
    fails("backup", store, folder / "b0.db", code=1, says="exists already")
    fails("backup", store, store, code=1, says="exists already")
    equal(sorted(p.name for p in folder.glob("*.part*")), [])
