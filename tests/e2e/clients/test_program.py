"""Programs as trainers (sweep.command): every way in which one can end, and what is left of it afterwards."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import serve_client
import tap
from tap import end, equal, fails, is_gone, run, show, start, trials_now, wait_for, write

CONFIG = """
[sweep]
command = sh train.sh {argv}
method = random
trials = %(trials)d
devices = cpu
runs_per_device = %(lanes)d
confirm = 0
max_failures = 0
%(more)s

[param]
Batch-Size = 64
""" + tap.space("""
learning-rate: type = float; distribution = log; min = 0.0001; max = 0.1
layers: type = int; min = 1; max = 5
""")

# Its score and cost follow from its parameters alone.
GOOD = r"""
while [ $# -gt 1 ]; do case $1 in --learning-rate) lr=$2 ;; --layers) layers=$2 ;; esac; shift 2; done
for i in 1 2 3; do
  awk -v lr=$lr -v n=$layers -v i=$i 'BEGIN { x = log(lr) / log(10) + 2.5
    printf "TRAWL score=%.5f step=%d cost=%.2f loss=%.2f\n", (1 - x * x / 6) * (1 - exp(-n * i / 3)), i * 10, n * i, 1 / i }'
done
"""


def study(folder, script, trials=1, lanes=1, more="", config=CONFIG):
    write(folder, "train.sh", script)
    return write(folder, "own.ini", config % {"trials": trials, "lanes": lanes, "more": more})


def sweep(folder, script, code=0, **more):
    """The trials of a study that ran to its end."""
    store = folder / "own.db"
    run("sweep", study(folder, script, **more), "--store", store, "--name", "own", "-q", code=code)
    return show(store, "own")["trials"]


def again(folder):
    """The next study of the folder begins with an empty store."""
    shutil.rmtree(folder / "own.db.runs", ignore_errors=True)
    (folder / "own.db").unlink(missing_ok=True)


def one_failed(folder, script, *says, **more):
    trials = sweep(folder, script, code=1, **more)
    equal([t["state"] for t in trials], ["failed"])
    for text in says:
        assert text in trials[0]["reason"], trials[0]
    return trials[0]


def running(pidfile):
    """The process that wrote its number there, once it has."""
    return int(wait_for(lambda: pidfile.exists() and pidfile.read_text().strip()))


def log_of(folder, number=0):
    return pathlib.Path(folder, "own.db.runs", "own", str(number), "output.log").read_bytes()


def test_finished_sweep_with_front_and_export(folder):
    store = folder / "own.db"
    trials = sweep(folder, GOOD, trials=10, more="method = pareto".replace("method", "; method"))
    equal([t["state"] for t in trials], ["done"] * 10)
    for t in trials:
        equal(set(t["params"]), {"param.learning_rate", "param.layers"})
        equal((t["env_steps"], t["cost_s"]), (30, 3.0 * t["params"]["param.layers"]))
    best = max(trials, key=lambda t: t["score"])
    front = [t for t in trials if t["on_front"]]
    assert front and all(a is b or not (b["cost_s"] <= a["cost_s"] and b["score"] > a["score"]) for a in front for b in trials)
    run("export", "own", "--store", store, "--pick", "trial=%d" % best["number"], "-o", folder / "best.ini")
    text = (folder / "best.ini").read_text()
    assert "\nBatch-Size = 64\n" in text and "\nlearning-rate = " in text, text  # as they were written
    result = json.loads(run("train", folder / "best.ini", "--json", "-q", cwd=folder)[0])
    equal((result["state"], result["score"], result["cost_s"]), ("done", best["score"], best["cost_s"]))
    line = run("export", "own", "--store", store, "--pick", "trial=0", "--format", "args")[0]
    assert "sh train.sh --Batch-Size 64 --learning-rate " in line, line
    run("rerun", "own", "--store", store, "--trial", best["number"])  # 0: the score is equal
    again = json.loads(run("rerun", "own", "--store", store, "--trial", "0", "--seeds", "2", "--json")[0])
    assert len({r["seed"] for r in again["runs"]} | {trials[0]["seed"]}) == 3, again
    shown = [run("show", "own", "--store", store)[0]]
    for name, words in (("own.html", ()), ("table.tex", ("--figure", "front")), ("importance.svg", ("--figure", "importance"))):
        run("report", "own", "--store", store, "-o", folder / name, *words)
        shown.append((folder / name).read_text().replace("\\_", "_"))
    for text in shown:  # a parameter has the name that the program knows, also in a wide table; only options have a section
        assert "param.l" not in text.replace("--sweep.param.", "") and "layers" in text, text
    run("sweep", "--resume", "own", "--store", store, "--trials", "12", "-q", "--sweep.learning-rate.max", "0.2")
    equal(len(show(store, "own")["trials"]), 12)
    wider = write(folder, "wider.ini", (folder / "own.ini").read_text().replace("max = 5", "max = 7").replace("max = 0.1", "max = 0.2"))
    run("sweep", wider, "--resume", "own", "--store", store, "--trials", "13", "-q")
    other = write(folder, "other.ini", (folder / "own.ini").read_text().replace("Batch-Size = 64", "Batch-Size = 65").replace("max = 5", "max = 7").replace("max = 0.1", "max = 0.2"))
    fails("sweep", other, "--resume", "own", "--store", store, "--trials", "14", "-q", code=2, says=("param.batch_size is 65", "64"))
    required = write(folder, "other.ini", (folder / "own.ini").read_text().replace("[param]", "require = layers < 3\n[param]"))
    fails("sweep", required, "--resume", "own", "--store", store, "--trials", "14", "-q", code=2, says="was begun with none")
    text = (folder / "own.ini").read_text()
    for new, says in (("Batch-Size = 64\nExtra = 1", ("was begun without param.extra",)), ("", ("param.batch_size = 64, which the config lacks",))):
        other = write(folder, "other.ini", text.replace("Batch-Size = 64", new))
        fails("sweep", other, "--resume", "own", "--store", store, "--trials", "14", "-q", code=2, says=says)


def test_an_expensive_trial_without_prospects_ends_early(folder):
    """From trial 9 on what should take a moment takes ten times as long: what is not among the best scores is stopped, with its score."""
    script = r"""
while [ $# -gt 1 ]; do case $1 in --x) x=$2 ;; esac; shift 2; done
cost=$(awk -v x=$x 'BEGIN { print 0.05 + 0.2 * x }')
echo "TRAWL score=$x step=0 cost=$cost"
[ "$TRAWL_TRIAL" -lt 9 ] || for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.4; echo "TRAWL score=$x step=$i cost=$cost"; done
"""
    config = "[sweep]\ncommand = sh train.sh {argv}\nmethod = pareto\ntrials = 11\ndevices = cpu\nruns_per_device = 1\nconfirm = 0\n[sweep.x]\n" \
             "type = float\ndistribution = uniform\nmin = 0\nmax = 1\n"
    write(folder, "train.sh", script)
    store = folder / "own.db"
    run("sweep", write(folder, "own.ini", config), "--store", store, "--name", "own", "-q")
    stopped = []
    for n in range(12, 60):  # a trial that may still score more than all others runs to its end: until one may not
        trials = show(store, "own")["trials"]
        stopped = [t for t in trials if t["state"] == "stopped"]
        if stopped:
            break
        run("sweep", "--resume", "own", "--store", store, "--trials", n, "-q")
    equal({t["state"] for t in trials[:9]}, {"done"})
    assert stopped and all("stopped early" in t["reason"] and t["score"] == t["params"]["param.x"] for t in stopped), trials
    best = max(t["score"] for t in trials if t["state"] == "done")
    assert all(t["score"] <= best and t["env_steps"] < 10 for t in stopped), stopped
    assert re.search(r"predictions: of \d+ proposals?, the score of ", run("show", "own", "--store", store)[0])


def test_a_device_in_place_of_the_file_of_metrics(folder):
    script = """ln -sf /dev/zero "$TRAWL_METRICS"; sleep 0.3; echo 'TRAWL score=1' """
    equal(sweep(folder, script)[0]["score"], 1)


def test_a_value_of_ones_own(folder):
    """By the name in the file, as Python would spell it, or whole."""
    sweep(folder, GOOD, trials=2)
    store = folder / "own.db"
    for i, name in enumerate(("--learning-rate", "--learning_rate", "--param.learning-rate")):
        run("try", "own", "--store", store, name, 0.01 + i / 100, "--trial", 0)
    run("sweep", "--resume", "own", "--store", store, "-q")
    trials = show(store, "own")["trials"]
    equal([(t["state"], t["params"]["param.learning_rate"]) for t in trials[2:]], [("done", 0.01), ("done", 0.02), ("done", 0.03)])
    equal({t["params"]["param.layers"] for t in trials[2:]}, {trials[0]["params"]["param.layers"]})


def test_what_the_program_finds(folder):
    script = """
env | grep '^TRAWL_' | sort; pwd; echo "args: $*"; cat "$TRAWL_CONFIG"; echo saved >"$TRAWL_DIR/model"; echo "TRAWL score=1"
"""
    config = CONFIG.replace("{argv}", "'two words' {learning-rate} {{x}} {seed} {trial} {argv}")
    trial = sweep(folder, script, config=config)[0]
    text, dir_ = log_of(folder).decode(), folder / "own.db.runs/own/0"
    for name, value in (("TRIAL", 0), ("ATTEMPT", 1), ("STUDY", "own"), ("SEED", trial["seed"]), ("DIR", dir_),
                        ("CONFIG", dir_ / "config.ini"), ("METRICS", dir_ / "metrics.jsonl")):
        assert "TRAWL_%s=%s\n" % (name, value) in text, text
    assert "\n%s\n" % folder.resolve() in text and (dir_ / "model").exists(), text
    args = re.search("^args: (.*)$", text, re.M)[1]
    rate = re.search("--learning-rate ([^ ]+)", args)[1]
    equal(args, "two words %s {x} %d 0 --Batch-Size 64 --learning-rate %s --layers %d"
          % (rate, trial["seed"], rate, trial["params"]["param.layers"]))
    equal(float(rate), trial["params"]["param.learning_rate"])
    assert "learning-rate = %s\n" % rate in text, text  # its config file


def test_names_stay_as_the_file_spells_them(folder):
    """Also where the command line spells them otherwise."""
    path = study(folder, """echo "args: $*"; echo 'TRAWL score=1'\n""")
    for i, name in enumerate(("learning-rate", "learning_rate", "param.Learning_Rate")):
        run("sweep", path, "--store", folder / ("%d.db" % i), "--name", "own", "-q", "--sweep.%s.max" % name, "0.3", "--param.batch_size",
            "7")
        text = pathlib.Path(folder, "%d.db.runs/own/0/output.log" % i).read_text()
        assert text.startswith("args: --Batch-Size 7 --learning-rate "), text


def test_words_for_a_shell_in_quotes(folder):
    script = """echo "args: $*"; echo 'TRAWL score=1' """
    config = CONFIG.replace("{argv}", "'|' \"~/x\" '2>&1' {note} {argv}").replace("[param]", "[param]\nnote = | $HOME ~/y")
    sweep(folder, script, config=config)
    assert "args: | ~/x 2>&1 | $HOME ~/y --" in log_of(folder).decode(), log_of(folder)


def test_what_the_command_does_not_pass(folder):
    path = study(folder, "echo 'TRAWL score=1'\n", config=CONFIG.replace("{argv}", "--lr {Learning_Rate} {batch-size}"))
    _, err = run("sweep", path, "--store", folder / "own.db", "--name", "own")
    assert "passes layers to the program by none of {argv}, {layers} and {config}" in err and "passes learning" not in err, err


def test_ranges_at_the_edge_of_numbers(folder):
    """A start inside the narrowest range, no overflow in the widest, whole numbers in digits."""
    config = CONFIG[:CONFIG.index("[sweep.learning-rate]")] + tap.space("""
near: type = float; min = 1000000.5; max = 1000000.75
far: type = float; min = -1.5e308; max = 1.5e308
whole: type = int; min = 0; max = 9000000000000000000
""")
    script = """echo "args: $*"; echo 'TRAWL score=1' """
    path = study(folder, script, trials=4, config=config)
    _, err = run("sweep", path, "--store", folder / "own.db", "--name", "own", "-q")
    equal(err, "")
    seen = []
    for t in show(folder / "own.db", "own")["trials"]:
        args = log_of(folder, t["number"]).decode().split("--")[2:]
        seen.append(tuple(a.split()[1] for a in args))
        near, far, whole = seen[-1]
        assert 1000000.5 <= float(near) <= 1000000.75 and abs(float(far)) <= 1.5e308 and 0 <= int(whole) <= 9e18, seen
    equal((seen[0], len(set(seen))), (("1000000.625", "0", "4500000000000000000"), 4))


def test_a_start_between_two_steps(folder):
    path = study(folder, "echo 'TRAWL score=1'\n", config=CONFIG.replace("max = 5", "max = 5\nstep = 2\nmean = 2"))
    _, err = run("sweep", path, "--store", folder / "own.db", "--name", "own", "-q")
    assert "param.layers = 2 lies between two steps of the range searched, 1 to 5" in err, err


def test_json_lines(folder):
    script = """echo '{"score": 0.25, "step": 5, "loss": NaN, "text": "x"}' >"$TRAWL_METRICS"
printf '{"score": 0.5, "step": 7, "cost": 3}' >>"$TRAWL_METRICS" """
    trial = sweep(folder, script)[0]
    equal((trial["state"], trial["score"], trial["env_steps"], trial["cost_s"]), ("done", 0.5, 7, 3))


def test_a_file_of_metrics_that_is_written_again(folder):
    """Emptied, or renamed to by a new file, after it was read; the line without an end was part of the old one."""
    for second in (""">"$TRAWL_METRICS" """, ">new; mv new $TRAWL_METRICS"):
        again(folder)
        script = """printf '{"score": 0.25, "step": 5000}\n{"score' >"$TRAWL_METRICS"
while [ ! -e go ]; do sleep 0.05; done
echo '{"score": 0.5}' """ + second
        process = start("sweep", study(folder, script), "--store", folder / "own.db", "--name", "own", "-q")
        wait_for(lambda: tap.rows(folder / "own.db", "SELECT 1 FROM metric WHERE env_steps = 5000"), process)
        write(folder, "go", "")
        end(process)
        (folder / "go").unlink()
        trial, = show(folder / "own.db", "own")["trials"]
        equal((trial["score"], trial["env_steps"]), (0.5, 5000))


def test_crash(folder):
    trial = one_failed(folder, "echo 'TRAWL score=1'\nprintf 'so weit, so schlecht: ñ 日本\\r\\n' >&2\nexit 3\n", "ended with exit code 3")
    assert trial["log_tail"].endswith("so weit, so schlecht: ñ 日本"), trial
    assert "exit code 3" in run("show", "own", "--store", folder / "own.db")[0]


def test_the_reason_has_the_exception(folder):
    write(folder, "broken.py", "import sys\nprint('TRAWL score=0.5 step=1')\n"
          "def train(rate):\n\n    raise ValueError('a rate of %s is\\ntoo much ñ' % rate)\n"
          "try:\n    train(2)\nfinally:\n    print('TRAWL score=0.25 step=2', flush=True)\n")
    one_failed(folder, "python3 broken.py", "ended with exit code 1: ValueError: a rate of 2 is")
    handled = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 7\n'
    last = handled.replace("KeyError: 7", "OSError: gone")
    prefixed = "".join("[rank0]: " + line for line in last.splitlines(True))
    group = ('  + Exception Group Traceback (most recent call last):\n  |   File "a.py", line 1\n  | ExceptionGroup: two (2 sub-exceptions)\n'
             '  +-+---------------- 1 ----------------\n' + "".join("    | " + line for line in last.splitlines(True)) + "    +-----\n")
    for i, (output, cause) in enumerate((
            ("out of memory\nTRAWL score=1\n", "out of memory"), (handled + "TRAWL score=1\nout of memory\n", "out of memory"),
            (handled + "TRAWL score=1\n" + last, "OSError: gone"), (handled + last + "see the log\n", "OSError: gone"),
            (handled + prefixed, "OSError: gone"), (handled + group, "OSError: gone"))):
        here = folder / str(i)
        here.mkdir()
        write(here, "output", output)
        trial = one_failed(here, "cat output\nexit 7\n", "ended with exit code 7: ")
        equal(trial["reason"], "ended with exit code 7: " + cause)


def test_death_by_signal(folder):
    one_failed(folder, "echo 'TRAWL score=1'\nkill -SEGV $$\n", "killed by signal 11")


def test_no_such_program(folder):
    one_failed(folder, "", "./no-such-program: No such file", config=CONFIG.replace("sh train.sh", "./no-such-program"))
    for command, script, says in (("train.sh", "", "write ./ before it"), ("./train.sh", "", "chmod +x"),
                                  ("./other.sh", "#!/no/such/interpreter\n", "the interpreter that its first line names")):
        again(folder)
        os.chmod(write(folder, "other.sh", script), 0o755)
        one_failed(folder, "", says, config=CONFIG.replace("sh train.sh", command))


def test_no_score(folder):
    one_failed(folder, "echo nothing\n", "no score", "TRAWL score=0.5")
    again(folder)
    one_failed(folder, "echo 'TRAWL score=[9.] step=3'\necho done\n", "no score", 'its line "TRAWL score=[9.] step=3"')
    again(folder)
    long = 'printf "%%0%dd\\n" 1\n'  # a line of so many bytes
    one_failed(folder, long % 65536, "no score", "its line has 64 kB or more")
    again(folder)
    assert one_failed(folder, long % 65535, "no score")["reason"].endswith("named by TRAWL_METRICS")
    again(folder)  # a JSON line of many numbers is read
    script = """printf '{"score": 0.25, "cost": 1, "much": "%060000d"}\n' 1 >> "$TRAWL_METRICS"\n"""
    equal(sweep(folder, script)[0]["score"], 0.25)


def test_steps_as_cost_need_steps(folder):
    one_failed(folder, "echo 'TRAWL score=1'\n", "no steps", "step=1000", more="cost = env_steps")
    again(folder)
    equal(sweep(folder, "echo 'TRAWL score=1 step=70'\n", more="cost = env_steps")[0]["env_steps"], 70)


def test_costs_of_two_measures_are_reported(folder):
    """Once, where some trials report a cost and others none that can be read."""
    for cost, told in (("cost=7", 0), ("", 0), ('cost=$((9 - 7 * (TRAWL_TRIAL % 2)))', 0), ('$([ $TRAWL_TRIAL = 0 ] || echo cost=7)', 1),
                       ("cost=$([ $TRAWL_TRIAL = 0 ] && echo 7 || echo nan)", 1)):
        again(folder)
        config = study(folder, "echo TRAWL score=0.5 %s\n" % cost, trials=4)
        err = run("sweep", config, "--store", folder / "own.db", "--name", "own")[1]
        equal(err.count("warning: own: of the trials up to 1 some reported their cost"), told)
        equal(err.count("some reported their cost"), told)


def test_costs_of_two_measures_are_reported_after_a_resume(folder):
    """Once, though no trial of the second controller has the measure of the first."""
    config = study(folder, "[ $TRAWL_TRIAL -lt 2 ] && cost=cost=7\necho TRAWL score=0.5 $cost\n", trials=2)
    store = folder / "own.db"
    told = [run("sweep", config, "--store", store, "--name", "own")[1]]
    told += [run("sweep", "--resume", "own", "--store", store, "--trials", n)[1] for n in (4, 5)]
    equal([err.count("warning: own: of the trials up to 2 some reported their cost") for err in told], [0, 1, 0])
    equal(told[2].count("some reported their cost"), 0)


def test_a_cost_in_a_unit_of_its_own(folder):
    """sweep.cost = own: fronts and pages go by what the program reports; seconds stay seconds, and no text calls it that."""
    script = GOOD.replace("n * i, 1 / i", "3600 * n * i, 1 / i")
    one_failed(folder, "echo 'TRAWL score=1'\n", "no cost", "cost=12.5", more="cost = own")
    for cost in ("-1", "nan", "inf", "0"):
        again(folder)
        one_failed(folder, "echo 'TRAWL score=1 cost=%s'\n" % cost, "it reported cost=%s, which is not a finite number above 0" % cost, more="cost = own")
    again(folder)
    trials = sweep(folder, script, trials=6, more="cost = own")
    store, at = folder / "own.db", ("--store", folder / "own.db")
    for t in trials:
        equal(t["device_s"], 3 * 3600 * t["params"]["param.layers"])
        assert 0 < t["cost_s"] < 600, t
    points = [(t["device_s"], t["score"]) for t in trials]
    single = {i for i, (c, s) in enumerate(points) if not any(c2 <= c and s2 >= s and (c2, s2) != (c, s) for c2, s2 in points)}
    equal({t["number"] for t in trials if t["on_front"]} - single, set())
    equal(show(store, "own")["study"]["cost_unit"], "own")
    text = run("show", "own", *at)[0]
    line = next(line for line in text.splitlines() if line.split()[:1] in (["0"], ["0*"]))
    cost = "%gk" % (points[0][0] / 1000)
    assert cost in line.split() and "h " not in line.split("default")[0], (cost, line)
    head = run("ls", *at)[0].splitlines()[0].split()
    assert "spent" in head and "cost" not in head, head  # its seconds
    page = folder / "own.html"
    run("report", "own", *at, "-o", page)
    assert "cost of a trial, log scale" in page.read_text() and " h</text>" not in page.read_text()
    head = run("export", "own", *at, "--pick", "trial=0")[0]
    assert "; cost %s; " % cost in head and re.search(r"; [0-9.e-]+ s$", head.split("; cost ")[1].splitlines()[0]), head
    run("export", "own", *at, "-o", folder / "own.csv")
    run("import", folder / "own.csv", "--study", "again", "--config", folder / "own.ini", "--store", folder / "new.db")
    equal([(t["score"], t["device_s"], t["on_front"]) for t in show(folder / "new.db", "again")["trials"]],
          [(t["score"], t["device_s"], t["on_front"]) for t in trials])
    fails("sweep", study(folder, script, more="cost = own\ndevice_time = 1h"), *at, "--name", "x", code=2,
          says="device_time does not go with sweep.cost = own")
    fails("sweep", write(folder, "tiny.ini", tap.TINY_SWEEP), "--sweep.cost", "own", *at, "--name", "x", code=2,
          says=("sweep.cost = own", "env_steps"))


def test_not_a_number(folder):
    one_failed(folder, "echo 'TRAWL score=0.5'\necho 'TRAWL score=nan'\n", "score is nan")
    again(folder)
    one_failed(folder, """echo '{"score": NaN}' >"$TRAWL_METRICS"\n""", "score is nan")


def test_scores_at_the_edge_of_numbers(folder):
    """Those whose squares overflow are failed trials; the others have a front, a model and a hypervolume."""
    script = """awk -v n=$4 'BEGIN { printf "TRAWL score=%s cost=%d\\n", n == 2 ? "1.7e308" : n == 3 ? "-1e151" : n * 1e149, n }'\n"""
    trials = sweep(folder, script.replace("$4", "$(echo $* | sed 's/.*layers \\([0-9]*\\).*/\\1/')"), trials=12)
    for t in trials:
        big = t["params"]["param.layers"] in (2, 3)
        equal(t["state"], "failed" if big else "done")
        assert not big or "up to 1e+150 can be searched by" in t["reason"], t
    assert {t["state"] for t in trials} == {"done", "failed"}, trials
    study = show(folder / "own.db", "own")["study"]
    assert 0 < study["hypervolume"] < 1e300 and abs(study["reference"]["score"]) < 1e151, study


def test_own_metric_to_minimise(folder):
    script = """case $* in *'--layers 1'*|*'--layers 2'*) x=1 ;; *) x=2 ;; esac
echo "TRAWL val/loss=$x score=9" """
    trials = sweep(folder, script, trials=8, more="metric = val/loss\ngoal = minimize")
    equal({t["score"] for t in trials}, {1, 2})
    out, _ = run("export", "own", "--store", folder / "own.db", "--pick", "best", "--format", "json")
    equal([json.loads(out)[key] for key in ("score", "score_se", "start_s")], [1, None, None])  # null: unknown
    run("export", "own", "--store", folder / "own.db", "--pick", "best", "-o", folder / "best.ini")
    equal(json.loads(run("train", folder / "best.ini", "--json", "-q", cwd=folder)[0])["score"], 1)


def test_longer_than_its_limit_and_deaf(folder):
    """SIGTERM is ignored, by it and by what it started in a group of its own."""
    script = """trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ >far.pid; while :; do sleep 0.1; done' &
echo $$ >near.pid
while :; do sleep 0.1; done
"""
    one_failed(folder, script, "longer than 10 s", "killed", more="trial_time = 10s\ngrace_s = 0.2")
    assert is_gone(running(folder / "near.pid")) and is_gone(running(folder / "far.pid"))


def test_ends_when_asked(folder):
    script = "trap 'echo bye; exit 0' TERM\necho 'TRAWL score=1'\nwhile :; do sleep 0.05; done\n"
    one_failed(folder, script, "longer than", "ended", more="trial_time = 10s")
    assert log_of(folder).endswith(b"bye\n"), log_of(folder)


def test_what_it_leaves_behind(folder):
    """The trial ends with its program; what that left running ends too, and nobody waits for its output."""
    sweep(folder, "(setsid sleep 1000 & echo $! >left.pid) &\nwhile [ ! -s left.pid ]; do sleep 0.02; done\necho 'TRAWL score=1'\n")
    assert is_gone(running(folder / "left.pid"))


def test_a_program_that_kills_its_guard_leaves_nothing(folder):
    script = "sh -c 'echo $$ >left.pid; exec sleep 1000' &\nwhile [ ! -s left.pid ]; do sleep 0.02; done\nkill -9 $PPID\nsleep 1000\n"
    one_failed(folder, script, "signal 9")
    assert is_gone(running(folder / "left.pid"))


def test_garbage_and_much_of_it(folder):
    script = r"""
head -c 6000000 /dev/zero | tr '\0' 'x'; echo; echo 'TRAWL'; echo 'TRAWL score'; echo 'TRAWL score=abc =1 x= 9a=1'; echo 'TRAWLER score=5'
head -c 300000 /dev/urandom
printf 'TRAWL score=0.25\rTRAWL score=0.75 step=9\n'
printf 'the end'
"""
    trial = sweep(folder, script)[0]
    equal((trial["state"], trial["score"], trial["env_steps"]), ("done", 0.75, 9))
    log = log_of(folder)
    assert len(log) < 4.5 * 2**20 and b"bytes of output are left out" in log and log.endswith(b"the end"), len(log)


def test_many_reports(folder):
    """Of ten thousand in a moment some are left out; the last one is the score."""
    trial = sweep(folder, "awk 'BEGIN { for (i = 0; i <= 10000; i++) printf \"TRAWL score=%d step=%d\\n\", i, i }'\n")[0]
    equal((trial["score"], trial["env_steps"]), (10000, 10000))


def test_several_on_one_gpu(folder):
    """By one worker; each waits until it has seen the others."""
    config = CONFIG.replace("devices = cpu", "devices = cuda:0")
    script = """mkdir -p here; touch here/$TRAWL_TRIAL
while [ $(ls here | wc -l) -lt 3 ]; do sleep 0.02; done
echo 'TRAWL score=1'
"""
    trials = sweep(folder, script, trials=3, lanes=3, more="trial_time = 200s", config=config)
    equal([(t["state"], t["device"]) for t in trials], [("done", "cuda:0")] * 3)


def test_four_at_once(folder):
    """Each waits until it has seen the three others."""
    script = """mkdir -p here; touch here/$TRAWL_TRIAL
while [ $(ls here | wc -l) -lt 4 ]; do sleep 0.02; done
echo 'TRAWL score=1'
"""
    trials = sweep(folder, script, trials=4, lanes=4, more="trial_time = 200s")
    equal([t["state"] for t in trials], ["done"] * 4)
    equal({t["slot"] for t in trials}, {"cpu/0", "cpu/1", "cpu/2", "cpu/3"})


SLEEPER = """echo $$ >$TRAWL_DIR/near.pid
setsid sh -c 'echo $$ >$TRAWL_DIR/far.pid; trap "" TERM; while :; do sleep 0.1; done' &
echo "TRAWL score=$TRAWL_ATTEMPT"
if [ -e go ]; then kill $!; exit 0; fi
while :; do sleep 0.1; done
"""


def sleepers(folder, lanes=2):
    store = folder / "own.db"
    process = start("sweep", study(folder, SLEEPER, trials=lanes, lanes=lanes, more="grace_s = 0.2"), "--store", store, "--name",
                    "own", "-q")
    pids = [running(folder / ("own.db.runs/own/%d/%s.pid" % (i, which))) for i in range(lanes) for which in ("near", "far")]
    assert not any(map(is_gone, pids))
    return store, process, pids


def finish(folder, store, lanes=2):
    """The study continues, from the start of its trials."""
    write(folder, "go", "")
    run("sweep", "--resume", "own", "--store", store, "-q")
    equal([(t["state"], t["score"]) for t in show(store, "own")["trials"]], [("done", 2.0)] * lanes)


def test_kill_of_the_controller_leaves_no_orphan(folder):
    store, process, pids = sleepers(folder)
    end(process, signal.SIGKILL, -9)
    wait_for(lambda: all(map(is_gone, pids)))
    finish(folder, store)


def test_kill_of_a_worker_leaves_no_orphan(folder):
    store, process, pids = sleepers(folder)
    os.kill(tap.children(process.pid)[0], signal.SIGKILL)
    wait_for(lambda: is_gone(pids[0]) or is_gone(pids[2]))
    end(process, signal.SIGTERM, 130)
    wait_for(lambda: all(map(is_gone, pids)))
    assert [t["state"] for t in trials_now(store, "own")] == ["queued", "queued"]


def test_interrupt_stops_the_programs(folder):
    store, process, pids = sleepers(folder)
    end(process, signal.SIGINT, 130)
    assert all(map(is_gone, pids))
    finish(folder, store)


def test_stop_ends_the_study(folder):
    store, process, pids = sleepers(folder)
    run("stop", "own", "--store", store)
    process.communicate(timeout=tap.PATIENCE_S)
    assert all(map(is_gone, pids))
    equal([t["state"] for t in show(store, "own")["trials"]], ["queued", "queued"])  # for --resume


def test_learning_from_another_study(folder):
    """Its trials are evidence where the program and what is fixed are alike."""
    store = folder / "own.db"
    sweep(folder, GOOD, trials=12)
    text = (folder / "own.ini").read_text().replace("max = 5", "max = 7").replace("method = random\n", "")
    more = ["sweep", write(folder, "b.ini", text), "--store", store, "--trials", "3", "-q"]
    run(*more, "--name", "b", "--from", "own")
    equal({t["origin"] for t in show(store, "b")["trials"]} & {"ehvi"}, {"ehvi"})  # three trials alone have no model
    run(*more, "--name", "alone")
    equal({t["origin"] for t in show(store, "alone")["trials"]} & {"ehvi"}, set())
    for old, new, code, says in (("Batch-Size = 64", "Batch-Size = 640", 2, ("param.batch_size is 64 there and 640 here",)),
                                 ("sh train.sh", "sh  ./train.sh", 2, ("sweep.command",))):
        other = write(folder, "c.ini", text.replace(old, new))
        fails("sweep", other, "--store", store, "--name", "c", "--from", "own", "-q", code=code, says=says)
    near = write(folder, "c.ini", text.replace("Batch-Size = 64", "Batch-Size = 100"))
    _, err = run("sweep", near, "--store", store, "--name", "c", "--from", "own", "--trials", 2, "-q")
    assert "count as near ones: param.batch_size is 64 there and 100 here" in err, err


def test_on_the_pages(folder):
    """A trial's values as they were written, the command beside them; the last lines of one that failed."""
    script = """case $* in *'--layers 3'*|*'--layers 1'*) echo it went wrong; exit 1 ;; esac
echo "TRAWL score=0.5 step=3 own/loss=2" """
    trials = sweep(folder, script, trials=8)
    server = serve_client.Server(folder / "own.db")
    get = lambda path: server.wait("/api/v1/studies/own" + path)
    equal(get("")["env"], "program")
    for number in ([t["state"] for t in trials].index(state) for state in ("done", "failed")):
        rows = {row["key"]: row for row in get("/trials/%d" % number)["config"]}
        equal((rows["param.batch_size"]["value"], rows["param.batch_size"]["origin"]), ("64", "set"))
        equal(rows["param.layers"]["origin"], "searched")
        equal(rows["sweep.command"]["value"], "sh train.sh {argv}")
        failed = trials[number]["state"] == "failed"
        equal(get("/trials/%d/log" % number)["text"], "it went wrong" if failed else "")
        if not failed:
            equal(get("/trials/%d/curves?metrics=own/loss" % number)["curves"]["own/loss"]["value"], [2])
    server.end()


def test_a_daemon_serves_programs_and_trainings(folder):
    """By the same worker: whatever opened it."""
    store = folder / "own.db"
    daemon = tap.daemon(store, "--devices", "cpu")
    own = study(folder, GOOD, trials=3)
    tiny = write(folder, "tiny.ini", tap.TINY_SWEEP)
    for i, config in enumerate((own, tiny, own)):
        run("sweep", config, "--store", store, "--name", "s%d" % i, "--trials", 3, "-q")
        trials = show(store, "s%d" % i)["trials"]
        equal([t["state"] for t in trials], ["done"] * 3)
        equal("param.layers" in trials[0]["params"], config is own)
    first = show(store, "s0")["trials"]
    equal([(t["params"], t["score"]) for t in first], [(t["params"], t["score"]) for t in show(store, "s2")["trials"]])
    end(daemon, signal.SIGTERM)


def test_gpus_by_their_own_names(folder):
    """Each of two has trials of its own; of those that we see, the program sees one."""
    config = CONFIG.replace("devices = cpu", "devices = cuda:0,cuda:1")
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "5,GPU-7"}
    store = folder / "own.db"
    # a trial waits until both devices have had one: else the first worker that is ready may run them all
    script = """echo "gpu $CUDA_VISIBLE_DEVICES"; touch "had-$CUDA_VISIBLE_DEVICES"
until [ -e had-5 ] && [ -e had-GPU-7 ]; do sleep 0.05; done
echo 'TRAWL score=1'"""
    path = study(folder, script, trials=6, config=config)
    run("sweep", path, "--store", store, "--name", "own", "-q", env=env)
    seen = {(t["slot"], log_of(folder, t["number"]).decode().split("\n")[0]) for t in show(store, "own")["trials"]}
    equal(seen, {("cuda:0", "gpu 5"), ("cuda:1", "gpu GPU-7")})


def test_conditions_and_requirements(folder):
    """Nothing is proposed that a requirement forbids, an option without effect is not passed, and no two trials differ in
    that alone."""
    config = CONFIG.replace("[sweep.layers]", """
[sweep.optimizer]
type = categorical
values = adam, sgd
[sweep.momentum]
type = float
min = 0.1
max = 0.9
step = 0.1
when = optimizer == sgd
[sweep.size]
type = categorical
values = small, medium, large
ordered = true
[sweep.layers]""").replace("type = float\ndistribution = log", "freeze = 0.01\ntype = float\ndistribution = log")
    script = """echo "args: $*"; echo "TRAWL score=0.5" """
    trials = sweep(folder, script, trials=30, config=config,
                   more="require = layers < 4 and (size != large or layers == 1)")
    points = set()
    for t in trials:
        p, args = t["params"], log_of(folder, t["number"]).decode()
        assert p["param.layers"] < 4 and (p["param.size"] != "large" or p["param.layers"] == 1), p
        equal("--momentum" in args, p["param.optimizer"] == "sgd")
        assert "--learning-rate 0.01 " in args and "param.learning_rate" not in p, args
        if p["param.optimizer"] == "sgd":
            momentum = re.search("--momentum ([^ ]+)", args)[1]
            assert re.fullmatch("0[.][1-9]", momentum), args
        else:
            momentum = None
        points.add((p["param.layers"], p["param.size"], p["param.optimizer"], momentum))
    equal(len(points), len(trials))


def test_a_requirement_that_leaves_little(folder):
    """About one point in ten thousand: all trials are found, none twice, and none that is not allowed."""
    config = CONFIG[:CONFIG.index("[sweep.learning-rate]")] + tap.space("""
opt: type = categorical; values = adam, sgd, lion
momentum: type = float; min = 0.1; max = 0.9; when = opt == sgd
depth: type = int; min = 1; max = 64
width: type = int; distribution = pow2; min = 1; max = 1024
""")
    for method in ("random", "pareto"):
        again(folder)
        trials = sweep(folder, "echo TRAWL score=0.$TRAWL_SEED cost=1", trials=20, config=config.replace("random", method),
                       more="require = depth * width <= 3 and opt == sgd and momentum > 0.85")
        points = {tuple(t["params"].values()) for t in trials}
        equal((len(trials), len(points)), (20, 20))
        for t in trials:
            p = t["params"]
            assert p["param.depth"] * p["param.width"] <= 3 and p["param.opt"] == "sgd" and p["param.momentum"] > 0.85, p


def test_a_space_is_used_up(folder):
    """Of 2 x 2 points, one of which is not allowed, and where one parameter has no effect for half of them: 1 + 2."""
    config = """
[sweep]
command = sh train.sh {argv}
devices = cpu
trials = 50
confirm = 0
method = random
""" + tap.space("""
a: type = bool
b: type = int; min = 1; max = 3; when = a == true
""") + """%s
"""
    write(folder, "train.sh", "echo 'TRAWL score=0.5'\n")
    for name, require, n in (("all", "", 4), ("some", "[sweep.c]\ntype = bool\nwhen = a == false and 1 < 2", 5)):
        store = folder / ("%s.db" % name)
        run("sweep", write(folder, "own.ini", config % require), "--store", store, "--name", "own", "-q")
        trials = show(store, "own")["trials"]
        equal(len(trials), n)


BAD = [  # a line of the config, what replaces it, and what the message says
    ("type = int", "", ("own.ini:21", "[sweep.layers] has no type", "float, int, categorical or bool")),
    ("type = int", "type = integer", ("own.ini:22", "\"integer\"", "are known")),
    ("max = 5", "", ("layers", "min and max")),
    ("max = 5", "max = five", ("own.ini:24", "layers.max", "a number is needed")),
    ("max = 5", "max = 5\nstep = 0.5", ("own.ini:25", "step", "whole")),
    ("max = 5", "max = 5\nstep = 9", ("own.ini:25", "step", "more than the whole range")),
    ("max = 0.1", "max = 0.1\nstep = 0.01", ("step", "linear")),
    ("max = 5", "max = 5\nordered = true", ("own.ini:25", "ordered")),
    ("max = 5", "max = 5\nvalue = 3", ("own.ini:25", "did you mean")),
    ("max = 5", "max = 5\nwhen = layers > 3", ("own.ini:25", "itself")),
    ("max = 5", "max = 5\nwhen = size > 3", ("own.ini:25", "size is neither an option")),
    ("max = 5", "max = 5\nwhen = learning_rate >", ("own.ini:25", "missing at its end")),
    ("max = 5", "max = 5\nwhen = learning_rate = 3", ("own.ini:25", "write ==")),
    ("max = 5", "max = 5\nwhen = learning_rate", ("own.ini:25", "compare it")),
    ("max = 5", "max = 5\nwhen = 2 * learning_rate > 3", ("own.ini:25", "not a range")),
    ("max = 5", "max = 5\nfreeze = x", ("own.ini:25", "freeze", "a number")),
    ("confirm = 0", "require = layers <", ("own.ini:8", "missing at its end")),
    ("confirm = 0", "require = layers < 9 <", ("own.ini:8",)),
    ("confirm = 0", "require = layers < 3 4", ("own.ini:8", "left over")),
    ("confirm = 0", "require = layrs < 3", ("own.ini:8", "layrs is neither an option")),
    ("confirm = 0", "require = layers > 9", ("no trial of this space was found", "own.ini:8", "layers > 9")),
    ("confirm = 0", "require = (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((layers", ("own.ini:8", "64")),
    ("{argv}", "{lr}", ("own.ini:3", "{lr} is not a parameter")),
    ("{argv}", "x{argv}", ("own.ini:3", "stand alone")),
    ("{argv}", "{argv} 'x", ("own.ini:3", "no end")),
    ("{argv}", "{argv} | tee log", ("own.ini:3", '"|" is for a shell', "sh -c")),
    ("{argv}", "{argv} 2>&1", ("own.ini:3", '"2>&1" is for a shell')),
    ("sh train.sh", "sh ~/train.sh", ("own.ini:3", '"~/train.sh" is for a shell')),
    ("sh train.sh", "LR=1 sh train.sh", ("own.ini:3", "write env before it")),
    ("Batch-Size = 64", "opt = ab\n[sweep.opt]\ntype = categorical\nvalues = a, b", ("own.ini:13", "allowed is one of a, b;", "[sweep.NAME] list them")),
    ("Batch-Size = 64", "seed = 64", ("own.ini:13", "seed", "--seed {seed}")),
    ("[param]", "[train]\ntotal_timesteps = 5\n[param]", ("own.ini:12", "Trawl's own trainer", "drop it")),
    ("[sweep.layers]\ntype = int", "[sweep.train.gamma]", ("own.ini:21", "[sweep.train.gamma] has no type")),
    ("confirm = 0", "directory = nowhere", ("no folder", "nowhere")),
    ("confirm = 0", "trial_time = soon", ("own.ini:8", "trial_time", "a time is needed")),
    ("confirm = 0", "comand = x", ("own.ini:8", "did you mean sweep.command")),
]


def test_wrong_configs(folder):
    for old, new, says in BAD:
        text = CONFIG % {"trials": 1, "lanes": 1, "more": ""}
        assert old in text, old
        path = write(folder, "own.ini", text.replace(old, new, 1))
        write(folder, "train.sh", "exit 1\n")
        fails("sweep", path, "--store", folder / "own.db", "--name", "own", "-q", code=2, says=says, cwd=folder)
    assert not (folder / "own.db").exists()
    path = write(folder, "own.ini", CONFIG % {"trials": 1, "lanes": 1, "more": ""})
    fails("sweep", path, "--name", "own", "--train.gamma", "0.9", code=2, says=("command line", "train.gamma"), cwd=folder)
    fails("train", path, "-o", "x.ckpt", code=2, says="leave -o", cwd=folder)


ROOT = pathlib.Path(__file__).resolve().parents[3]


def like_a_user(folder):
    """The examples in a folder of their own, and the program by its name."""
    shutil.copytree(ROOT / "examples" / "own", folder / "examples" / "own")
    (folder / "bin").mkdir()
    (folder / "bin" / "trawl").symlink_to(tap.TRAWL)
    return {**os.environ, "PATH": "%s:%s" % (folder / "bin", os.environ["PATH"])}


def test_the_page_on_own_trainers(folder):
    """Each command of docs/own-trainer.md, in its order, in one folder; its tables name every word."""
    env = like_a_user(folder)
    text = (ROOT / "docs" / "own-trainer.md").read_text()
    assert len(text.splitlines()) <= 120
    commands = "".join(re.findall("^```sh\n(.*?)^```$", text, re.M | re.S))
    assert commands.count("trawl ") >= 6, commands
    done = subprocess.run(["sh", "-eu"], input=commands, cwd=folder, env=env, capture_output=True, text=True,
                          timeout=tap.PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "TRAWL_SEED=" in done.stdout and "mean" in done.stdout, done.stdout
    config = re.search("^```ini\n(.*?)^```$", text, re.M | re.S)[1]
    shell = (ROOT / "examples" / "own" / "shell.ini").read_text()
    for line in config.splitlines():
        assert line in shell, "%r is not in examples/own/shell.ini" % line
    for name in ("TRAWL_TRIAL", "TRAWL_ATTEMPT", "TRAWL_STUDY", "TRAWL_SEED", "TRAWL_CONFIG", "TRAWL_DIR", "TRAWL_METRICS"):
        assert name in text, name


def test_examples(folder):
    """Those in Python and in C; that in PyTorch is only read, nothing of it is installed here."""
    env = like_a_user(folder)
    run("sweep", "examples/own/python.ini", "--store", "own.db", "--name", "py", "--trials", 6, "-q", cwd=folder, env=env)
    trials = show(folder / "own.db", "py")["trials"]
    equal([t["state"] for t in trials], ["done"] * 6)
    for t in trials:
        p = {k.split(".")[1]: v for k, v in t["params"].items()}
        assert p["epochs"] * p["lr"] < 20 and t["cost_s"] == p["epochs"], t
        assert abs(p["momentum"] / 0.05 - round(p["momentum"] / 0.05)) < 1e-9, p
    if shutil.which("cc"):
        subprocess.run(["cc", "-o", "examples/own/train", "examples/own/train.c"], cwd=folder, check=True)
        run("sweep", "examples/own/c.ini", "--store", "own.db", "--name", "c", "--trials", 6, "-q", cwd=folder, env=env)
        equal([t["state"] for t in show(folder / "own.db", "c")["trials"]], ["done"] * 6)
    text = run("sweep", "examples/own/ppo_cartpole.ini", "--print-config", cwd=folder, env=env)[0]
    assert "[sweep.param.num_steps]" in text and "\nenv-id = CartPole-v1\n" in text, text
    again = write(folder / "examples" / "own", "again.ini", text)
    equal(run("sweep", again, "--print-config", cwd=folder, env=env)[0], text)
