"""What a person does with a study by hand: try, retry, drop, note, tag, rename, rm and gc."""
import json
import math
import re
import signal
import subprocess
import xml.etree.ElementTree as ET

import asking
import tap
from tap import TINY_SWEEP, change, end, equal, fails, rows, run, running, show, wait_for, write


def sweep(folder, name="a", trials=6, *more):
    config = write(folder, "sweep.ini", TINY_SWEEP)
    store = folder / "s.db"
    run("sweep", config, "--store", store, "--name", name, "--trials", trials, "--seed", 3, *more)
    return store


def names(store):
    return [s["name"] for s in json.loads(run("ls", "--store", store, "--json")[0])]


def test_try_queues_the_values_given_and_those_of_a_trial(folder):
    store = sweep(folder)
    base = show(store, "a")["trials"][2]["params"]
    out, _ = run("try", "a", "--trial", 2, "--train.learning-rate", "0.0123", "--store", store)
    assert "trial 6 of a is the next to run; the study continues" in out and "no controller runs it" in out, out
    trial = show(store, "a")["trials"][6]
    equal((trial["state"], trial["origin"]), ("queued", "enqueued"))
    equal(trial["params"], {**base, "train.learning_rate": 0.0123})
    run("sweep", "--resume", "a", "--store", store)
    study = show(store, "a")
    equal([(t["number"], t["state"]) for t in study["trials"]][6:], [(6, "done")])
    done = json.loads(run("try", "a", "--policy.hidden_size=8", "--store", store, "--json")[0])
    equal((done["command"], done["done_by"]), ("try", "store"))
    best = study["trials"][study["study"]["best"]]["params"]
    equal(show(store, "a")["trials"][7]["params"], {**best, "policy.hidden_size": 8})


def test_try_refuses_what_no_trial_can_have(folder):
    store = sweep(folder, "a", 2)
    at = ("--store", store)
    fails("try", "a", *at, code=2, says="try: give values")
    fails("try", "a", "--train.learning_rate", *at, "--train.learning_rate", "1", code=2, says="")
    fails("try", "a", *at, "--train.learning_rate", code=2, says="needs a value")
    fails("try", "a", *at, "--train.learning_rate", 5, code=2, says="searched from 0.001 to 0.1")
    fails("try", "a", *at, "--train.lr", 0.01, code=2, says="searches no 'train.lr'; it searches train.learning_rate")
    fails("try", "a", *at, "--policy.hidden_size", 9, code=2, says="the nearest is 8")
    fails("try", "a", *at, "--train.gamma", 0.9, "--train.gamma", 0.95, code=2, says="given twice")
    fails("try", "a", *at, "--train.gamma", 0.9, "--trial", 9, code=1, says="no trial 9")
    fails("try", "b", *at, "--train.gamma", 0.9, code=1, says="no study 'b'")
    equal(len(show(store, "a")["trials"]), 2)


def test_try_refuses_a_value_without_effect_that_would_repeat_a_trial(folder):
    config = write(folder, "own.ini", """
[sweep]
command = sh -c "echo TRAWL score=0.5"
method = random
devices = cpu
confirm = 0
""" + tap.space("""
lr: type = float; min = 0; max = 1
opt: type = categorical; values = adam, sgd, muon
layers: type = int; min = 0; max = 4
mom: type = float; min = 0; max = 1; when = opt != adam
nesterov: type = float; min = 0; max = 1; when = mom > 0.5
width: type = int; min = 1; max = 9; when = layers > 0
"""))
    at = ("--store", folder / "s.db")
    run("sweep", config, *at, "--name", "a", "--trials", 1)
    run("try", "a", "--opt", "adam", "--layers", 0, "--lr", 0.5, *at)  # trial 1, which the others start from
    sure = ("--trial", 1, *at)
    fails("try", "a", "--mom", 0.3, *sure, code=2, says="try: mom has an effect only where opt is sgd or muon; give that too")
    fails("try", "a", "--mom", 0.3, "--lr", 0.5, *sure, code=2, says="no value given changes the config")
    fails("try", "a", "--nesterov", 0.3, *sure, code=2, says="only where mom is from 0.5 to 1 and opt is sgd or muon;")
    fails("try", "a", "--width", 3, *sure, code=2, says="width has an effect only where layers is from 1 to 4;")
    equal(len(show(folder / "s.db", "a")["trials"]), 2)
    run("try", "a", *sure)  # a repeat that was asked for
    run("try", "a", "--mom", 0.3, "--lr", 0.6, *sure)
    run("try", "a", "--mom", 0.3, "--opt", "sgd", *sure)
    run("try", "a", "--width", 3, "--layers", 1, *sure)
    params = [t["params"] for t in show(folder / "s.db", "a")["trials"]][2:]
    equal([(p["param.lr"], p["param.opt"], p["param.layers"]) for p in params],
          [(0.5, "adam", 0), (0.6, "adam", 0), (0.5, "sgd", 0), (0.5, "adam", 1)])
    equal((params[2]["param.mom"], params[3]["param.width"]), (0.3, 3))


def test_a_dropped_trial_is_on_no_front_until_it_counts_again(folder):
    store = sweep(folder)
    at = ("--store", store)
    before = show(store, "a")
    best = before["study"]["best"]
    run("drop", "a", best, "--reason", "the machine was busy", *at)
    after = show(store, "a")
    trial = after["trials"][best]
    equal((trial["dropped"], trial["on_front"], trial["state"]), ("the machine was busy", False, "done"))
    assert after["study"]["best"] != best, best
    assert "dropped: the machine was busy" in run("show", "a", *at)[0]
    assert [t for t in after["trials"] if t["on_front"]]
    run("check", store)
    change(store, "UPDATE mark SET dropped = 'no reason'")  # by anything but Trawl
    assert "the remark on it does not fit" in "".join(run("check", store, code=1))
    change(store, "UPDATE mark SET dropped = 'the machine was busy'")
    run("drop", "a", best, "--undo", *at)
    again = show(store, "a")
    equal([t["on_front"] for t in again["trials"]], [t["on_front"] for t in before["trials"]])
    equal((again["study"]["best"], again["trials"][best]["dropped"]), (best, None))


def test_drop_needs_a_reason_and_a_trial_that_has_ended(folder):
    store = sweep(folder, "a", 2)
    at = ("--store", store)
    fails("drop", "a", 0, *at, code=2, says="--reason TEXT")
    fails("drop", "a", *at, code=2, says="missing")
    fails("drop", "a", "x", "--reason", "r", *at, code=2, says="'x' is not a trial number")
    fails("drop", "a", 7, "--reason", "r", *at, code=1, says="no trial 7")
    fails("drop", "a", 0, "--undo", *at, code=2, says="is not dropped")
    run("try", "a", "--train.gamma", 0.9, *at)
    fails("drop", "a", 2, "--reason", "r", *at, code=2, says="trial 2 of a is queued")


def test_notes_and_tags_are_shown(folder):
    store = sweep(folder, "a", 2)
    at = ("--store", store)
    run("note", "a", "with the old reward", *at)
    run("note", "a", 1, "odd curve", *at)
    for tag in ("paper", "draft", "paper"):
        run("tag", "a", tag, *at)
    run("tag", "a", 1, "odd", *at)
    study = show(store, "a")
    equal((study["study"]["note"], study["study"]["tags"]), ("with the old reward", "draft,paper"))
    equal((study["trials"][1]["note"], study["trials"][1]["tags"], study["trials"][0]["note"]), ("odd curve", "odd", None))
    out, _ = run("show", "a", *at)
    for line in ("note: with the old reward", "tags: draft,paper", "note: odd curve", "tags: odd"):
        assert line in out, out
    row = json.loads(run("ls", *at, "--json")[0])[0]
    equal((row["note"], row["tags"]), ("with the old reward", "draft,paper"))
    run("tag", "a", "draft", "--undo", *at), run("note", "a", "--undo", *at), run("note", "a", 1, "--undo", *at)
    study = show(store, "a")
    equal((study["study"]["note"], study["study"]["tags"], study["trials"][1]["note"]), (None, "paper", None))
    fails("tag", "a", "two words", *at, code=2, says="one word")
    fails("tag", "a", "none", "--undo", *at, code=2, says="no tag 'none'")
    fails("note", "a", *at, code=2, says="give a text")
    fails("note", "a", "x", "text", *at, code=2, says="'x' is not a trial number")
    for text in ("\033[31mred", "\x9b31mred"):
        fails("note", "a", text, *at, code=2, says="a control character")
    fails("note", "a", 9, "text", *at, code=1, says="no trial 9")


def test_rename_takes_the_checkpoints_along(folder):
    store = sweep(folder, "a", 3, "--sweep.keep", "all")
    at = ("--store", store)
    files = folder / "s.db.checkpoints"
    equal(sorted(p.name for p in files.iterdir()), ["a-%d.ckpt" % i for i in range(3)])
    run("rename", "a", "wide", *at)
    equal(names(store), ["wide"])
    equal(sorted(p.name for p in files.iterdir()), ["wide-%d.ckpt" % i for i in range(3)])
    fails("rename", "wide", "no/slash", *at, code=2, says="'no/slash'")
    fails("rename", "a", "b", *at, code=1, says="no study 'a'")
    sweep(folder, "b", 1)
    fails("rename", "b", "wide", *at, code=1, says="already has a study 'wide'")
    run("check", store)


def test_rename_leaves_the_folder_in_which_a_running_study_saves(folder):
    store = sweep(folder, "a", 1)
    config = write(folder, "long.ini", TINY_SWEEP.replace("4096", "400000000"))
    process = tap.start("sweep", config, "--store", store, "--name", "long", "--trials", 1)
    wait_for(lambda: running(store, "long"), process)
    run("rename", "a", "b", "--store", store)
    _, log = end(process, signal.SIGINT, 130)
    assert (folder / "s.db.checkpoints" / "long-0.ckpt").exists(), log


def test_rm_keeps_a_study_until_gc(folder):
    store = sweep(folder, "a", 2, "--sweep.keep", "all")
    at = ("--store", store)
    files = folder / "s.db.checkpoints"
    before = show(store, "a")["trials"]
    run("rm", "a", *at)
    equal(names(store), [])
    fails("show", "a", *at, code=1, says="no study 'a'")
    sweep(folder, "a", 1)  # its name is free
    fails("rm", "a", "--undo", *at, code=1, says="already has a study 'a'")
    run("rename", "a", "other", *at)
    run("rm", "a", "--undo", *at)
    equal(show(store, "a")["trials"], before)
    assert (files / "a-1.ckpt").exists()
    equal(json.loads(run("gc", *at, "--json")[0]), {"dry_run": False, "removed": [], "kept": []})
    run("rm", "a", *at)
    fails("continue", "a~1", *at, code=2, says="is in the trash")
    equal(json.loads(run("gc", "--dry-run", *at, "--json")[0])["removed"], ["a"])
    assert "nothing in the trash" in run("gc", "--older", "1h", *at)[0]
    assert "study a is removed" in run("gc", *at)[0]
    fails("rm", "a", "--undo", *at, code=1, says="the trash of")
    fails("rm", "a", *at, code=1, says="no study 'a'")
    assert not list(files.glob("a~*")), list(files.iterdir())
    equal(rows(store, "SELECT name FROM study"), [("other",)])
    equal(rows(store, "SELECT count(*) FROM trial"), [(1,)])
    equal(rows(store, "SELECT count(*) FROM metric WHERE trial_id NOT IN (SELECT id FROM trial)"), [(0,)])
    run("check", store)


def test_gc_keeps_what_trackers_have_not_got(folder):
    store = sweep(folder, "a", 1, "--track", "webhook", "--track.offline", "true", "--track.webhook_url", "http://127.0.0.1:9/")
    sweep(folder, "b", 1)
    at = ("--store", store)
    waiting, = rows(store, "SELECT count(*) FROM outbox")[0]
    assert waiting > 1, waiting
    assert "have not received %d rows: --undo and `trawl sync a" % waiting in run("rm", "a", *at)[0]
    run("rm", "b", *at)
    out, err = run("gc", "--dry-run", *at)
    assert "study a would be kept" in out and "study b would be removed" in out and "%d rows" % waiting in err, (out, err)
    out, err = run("gc", *at, code=1)
    assert "study a is kept" in out and "study b is removed" in out and "1 study is kept" in err, (out, err)
    equal(json.loads(run("gc", *at, "--json", code=1)[0]), {"dry_run": False, "removed": [], "kept": ["a"]})
    equal(json.loads(run("gc", *at, "--json", "--force")[0]), {"dry_run": False, "removed": ["a"], "kept": []})


def test_folders_of_programs_follow_their_study(folder):
    """Renamed, in the trash, taken back and removed: nothing of STORE.runs stays, and nothing outside is touched."""
    store, kept = folder / "s.db", write(folder, "kept", "text")
    write(folder, "train.sh", 'ln -sf "%s" "$TRAWL_DIR/link"; mkdir -p "$TRAWL_DIR/more"; echo 1 > "$TRAWL_DIR/more/file"\n'
          'echo TRAWL score=1\n' % kept)
    config = write(folder, "own.ini", "[sweep]\ncommand = sh train.sh {argv}\ntrials = 2\n\n[sweep.x]\ntype = float\nmin = 0\nmax = 1\n")
    at, runs = ("--store", store), folder / "s.db.runs"

    def folders():
        return sorted("%s/%s" % (p.parent.name, p.name) for p in runs.glob("*/*"))
    run("sweep", config, *at, "--name", "a", "-q")
    run("sweep", config, *at, "--name", "ab", "-q")
    equal(folders(), ["a/0", "a/1", "ab/0", "ab/1"])
    run("rename", "a", "b", *at)
    equal(folders(), ["ab/0", "ab/1", "b/0", "b/1"])
    run("rm", "b", *at)
    equal(folders(), ["ab/0", "ab/1", "b~1/0", "b~1/1"])
    run("rm", "b", "--undo", *at)
    equal(folders(), ["ab/0", "ab/1", "b/0", "b/1"])
    run("rm", "b", *at)
    run("gc", "--dry-run", *at)
    equal(folders(), ["ab/0", "ab/1", "b~1/0", "b~1/1"])
    run("gc", *at)
    equal(folders(), ["ab/0", "ab/1"])
    run("rm", "ab", *at)
    run("gc", *at)
    equal((runs.exists(), kept.read_text()), (False, "text"))


def test_diff_names_what_two_trials_differ_in(folder):
    store = sweep(folder, "a", 3)
    at = ("--store", store)
    trials = show(store, "a")["trials"]
    found = json.loads(run("diff", "a", 0, 2, *at, "--json")[0])
    keys = {row["key"]: (float(row["a"]), float(row["b"])) for row in found["differences"]}
    changed = {k for k in trials[0]["params"] if trials[0]["params"][k] != trials[2]["params"][k]}
    equal(set(keys), changed | {"train.seed"})
    for key in changed:
        equal(keys[key], (trials[0]["params"][key], trials[2]["params"][key]))
    equal((found["a"]["score"], found["b"]["cost"]), (trials[0]["score"], trials[2]["cost_s"]))
    assert "their configs are the same" in run("diff", "a", 1, 1, *at)[0]
    assert "train.gamma" in run("diff", "a", 0, 2, *at)[0]
    fails("diff", "a", 0, *at, code=2, says="missing")
    fails("diff", "a", 0, "x", *at, code=2, says="'x' is not a trial number")
    fails("diff", "a", 0, 9, *at, code=1, says="no trial 9, its trials are 0 to 2")


def test_compare_has_one_reference_for_both(folder):
    store = sweep(folder, "a", 4)
    sweep(folder, "b", 6, "--seed", 9)
    at = ("--store", store)
    found = json.loads(run("compare", "a", "b", *at, "--json")[0])
    studies = [show(store, name) for name in "ab"]
    cost = max(s["study"]["reference"]["cost"] for s in studies)
    score = min(s["study"]["reference"]["score"] for s in studies)
    equal(found["reference"], {"cost": cost, "score": score})
    for side, study in zip(found["studies"], studies):
        area, top = 0.0, score  # of the steps under the front of what is expected, from the cheapest up
        for t in sorted((t for t in study["trials"] if t["score_mean"] > score and t["cost_mean"] < cost), key=lambda t: t["cost_mean"]):
            if t["score_mean"] > top:
                area, top = area + (t["score_mean"] - top) * math.log(cost / t["cost_mean"]), t["score_mean"]
        assert abs(side["hypervolume"] - area) <= 1e-9 * max(area, 1), (side, area)
        reached = [t for t in study["trials"] if t["score"] >= found["score"]]
        equal(side["reached_cost"], min(t["cost_s"] for t in reached))
    assert "never" in run("compare", "a", "b", *at, "--score", 99)[0]
    page = folder / "compare.html"
    out, err = run("compare", "a", "b", *at, "-o", page)
    equal(out, "")
    text = page.read_text()
    assert "wrote %s" % page in err and text.endswith("</html>\n") and "<script" not in text and "http://" not in text.replace(
        "http://www.w3.org/2000/svg", ""), text[:2000]
    charts = re.findall("<svg.*?</svg>", text, re.S)
    equal(len(charts), 2)  # for a wide and for a narrow window
    for chart in charts:
        ET.fromstring(chart)
        for i, study in enumerate(studies):  # each member of both fronts, with its study and trial
            members = [t["number"] for t in study["trials"] if t["on_front"]]
            equal(sorted(int(n) for n in re.findall("<title>%s, trial ([0-9]+):" % "ab"[i], chart)), members)
            assert '<g class="study c%d">' % i in chart
    cells = dict(re.findall("<tr><td>([^<]*)</td>((?:<td>[^<]*</td>)+)</tr>", text))
    equal(cells["trials"], "<td>4</td><td>6</td>")
    equal(cells["sweep.seed"], "<td>3</td><td>9</td>")
    assert "train.gamma" not in cells, cells
    (folder / "d.html").mkdir()
    fails("compare", "a", "b", *at, "-o", folder / "d.html", code=1, says="is a directory")
    fails("compare", "a", "b", *at, "-o", folder / "x.pdf", code=2, says="x.pdf does not end in .html")
    equal((folder / "x.pdf").exists(), False)
    equal(json.loads(run("compare", "a", "a", *at, "--other", store, "--json")[0])["studies"][1]["study"], "a")
    fails("compare", "a", *at, code=2, says="missing")
    fails("compare", "a", "c", *at, code=1, says="no study 'c'")
    fails("compare", "a", "b", *at, "--score", "high", code=2, says="'high'")
    config = write(folder, "m.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmetric = ep_length\ngoal = minimize"))
    run("sweep", config, *at, "--name", "m", "--trials", 1)
    fails("compare", "a", "m", *at, code=2, says="only scores of one kind")


def test_pages_show_what_was_dropped_at_once(folder):
    store = sweep(folder, "a", 4)
    server = asking.Server(store)
    at = server.wait("/api/v1/studies/a/trials?fields=number,dropped,note,on_front", lambda a: a["total"] == 4)
    best = next(row[0] for row in at["rows"] if row[3])
    run("drop", "a", best, "--reason", "odd", "--store", store)
    run("note", "a", best, "look again", "--store", store)
    row = server.wait("/api/v1/studies/a/trials?fields=number,dropped,note,on_front", lambda a: a["rows"][best][2] is not None)["rows"][best]
    equal(row, [best, "odd", "look again", False])
    run("drop", "a", best, "--undo", "--store", store)
    server.wait("/api/v1/studies/a/trials?fields=number,dropped,note,on_front", lambda a: a["rows"][best][1] is None)
    server.end()


def test_a_running_controller_does_them_too(folder):
    store = sweep(folder, "a", 3)
    config = write(folder, "long.ini", TINY_SWEEP.replace("4096", "400000"))
    daemon = tap.daemon(store)
    at = ("--store", store)
    tap.start("sweep", config, *at, "--name", "long", "--trials", 1000)
    wait_for(lambda: running(store, "long"), daemon)
    fails("rm", "long", *at, code=2, says="the study long is running")
    fails("rename", "long", "short", *at, code=2, says="the study long is running")
    equal(json.loads(run("drop", "a", 1, "--reason", "odd", *at, "--json")[0])["done_by"], "controller")
    run("try", "a", "--train.gamma", 0.9, *at)
    wait_for(lambda: [t["state"] for t in tap.trials_now(store)][3:] == ["done"], daemon)
    equal(show(store, "a")["trials"][1]["dropped"], "odd")
    run("note", "long", "too long", *at), run("tag", "long", 0, "slow", *at)
    equal(show(store, "long")["study"]["note"], "too long")
    run("stop", "long", *at)
    wait_for(lambda: subprocess.run([tap.TRAWL, "rm", "long", *map(str, at)], capture_output=True).returncode == 0, daemon)
    equal(names(store), ["a"])
    run("gc", *at)
    end(daemon, signal.SIGTERM)
    run("check", store)
