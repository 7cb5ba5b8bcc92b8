"""`trawl replay`: the proposals of a study, whose results came from several workers in any order, are made again to the byte: after kill -9
of controller and workers, resumes, trials that people left out or gave, and a space that was widened. It notices what differs."""
import json
import math
import random
import signal
import subprocess
import time

import asking
import tap
from tap import TINY_SWEEP, change, children, end, equal, fails, rows, run, write

PARETO = TINY_SWEEP.replace("method = sobol", "method = pareto") + """
[sweep.train.total_timesteps]
distribution = log
min = 2048
max = 16384
"""


def finished(store):
    return len(rows(store, "SELECT 1 FROM trial WHERE state = 'done'"))


def replay(store, name="a", code=0):
    out, _ = run("replay", name, "--store", store, "--json", code=code)
    return json.loads(out)


def what_was_seen(store):
    return [json.loads(s) for s, in rows(store, "SELECT seen FROM trial WHERE seen IS NOT NULL ORDER BY number")]


def ends_named(seen):
    """The trials whose results came, in turn."""
    return [i for s in seen for i in s.get("ended", [])]


def sweep_words(folder, store, *more):
    return ["sweep", *more, "--store", store, "--devices", "cmd*4:%s worker --stdio" % tap.TRAWL]


def test_many_workers_kills_and_resumes_replay_to_the_same_bytes(folder):
    store, config, chance = folder / "s.db", write(folder, "a.ini", PARETO), random.Random(5)
    words = sweep_words(folder, store, config, "--name", "a", "--trials", 20, "--seed", 3)
    # three controllers die, and workers before each of them; a slow machine looks when a controller has long ended
    for until, more in (8, 30), (16, 40), (24, 40):
        process = subprocess.Popen([tap.TRAWL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        tap.started.append(process)
        killed = False
        while finished(store) < until and process.poll() is None:
            time.sleep(0.01)
            workers = children(process.pid)
            if not killed and workers and finished(store) >= until - 4:
                tap.kill(chance.choice(workers))
                killed = True
        process.kill()
        process.wait()
        if until == 8:
            dropped = rows(store, "SELECT max(number) FROM trial WHERE state = 'done'")[0][0]
            run("drop", "a", dropped, "--reason", "by hand", "--store", store)
        if until == 16:
            run("try", "a", "--store", store, "--train.learning_rate", 0.05)
        words = sweep_words(folder, store, "--resume", "a", "--trials", more)
    run("drop", "a", dropped, "--undo", "--store", store)
    run(*sweep_words(folder, store, "--resume", "a", "--trials", 46, "--sweep.train.learning_rate.max", 0.3))
    found = replay(store)
    equal(found["differences"], [])
    equal(found["unrecorded"], 0)
    given = rows(store, "SELECT count(*) FROM trial WHERE seen IS NULL")[0][0]
    equal((found["same"], found["given"]), (46 - given, given))
    origins = {o for o, in rows(store, "SELECT origin FROM trial")}
    assert {"default", "enqueued", "sobol", "ehvi", "confirm"} <= origins, origins
    spaces = rows(store, "SELECT count(*) FROM trial WHERE seen LIKE '%\"space\"%'")[0][0]
    equal(spaces, 2)  # the first one and the wider one, not one for each controller
    seen = what_was_seen(store)
    named = ends_named(seen)
    equal(len(named), len(set(named)))  # an end is named once
    equal(sum(dropped in s.get("dropped", []) for s in seen) + sum(dropped in s.get("counted", []) for s in seen), 2)


def test_proposals_that_are_made_together(folder):
    """Past 16 trials under way a few are proposed at a time, runs that confirm among them; a controller that is killed loses none of its queue."""
    text, chance = PARETO.replace("[sweep]", "[sweep]\ndevices = none\nconfirm = 0.5"), random.Random(7)
    store = folder / "s.db"
    process, server = tap.daemon(store), asking.Server(store)
    asking.submit(folder, store, text, 200)
    held = [server.ask("client %d" % i) for i in range(40)]
    for k in range(70):
        told = held.pop(chance.randrange(len(held)))
        x = told["params"]["train.learning_rate"]
        server.tell(told, score=chance.random() * 0.1 - abs(math.log10(x / 0.003)), cost=told["params"]["train.total_timesteps"] / 1000)
        held.append(server.ask("client %d" % (40 + k)))
        if k == 40:
            end(process, signal.SIGKILL, -9)
            process = tap.daemon(store)
    end(process, signal.SIGKILL, -9)
    found = replay(store)
    equal(found["differences"], [])
    seen = what_was_seen(store)
    equal(found["same"], len(seen))
    named = ends_named(seen)
    assert named != sorted(named)  # results did not come in the order of the trials
    origins = {o for o, in rows(store, "SELECT origin FROM trial WHERE seen LIKE '%\"of\"%'")}
    assert {"sobol", "ehvi", "confirm"} <= origins, origins
    assert max(s.get("place", 0) for s in seen) >= 2, seen


def test_another_order_of_results_is_noticed(folder):
    store, config = folder / "s.db", write(folder, "a.ini", PARETO.replace("[sweep]", "[sweep]\nconfirm = 0"))
    run("sweep", config, "--name", "a", "--trials", 16, "--seed", 3, "--store", store)
    equal(replay(store)["same"], 15)
    proposed = rows(store, "SELECT number, seen FROM trial WHERE origin = 'ehvi' ORDER BY number")
    number, seen = next((n, s) for n, s in ((n, json.loads(s)) for n, s in proposed) if s["ended"])  # a proposal made ahead may name no new end
    seen["ended"] = seen["ended"][:-1]  # as if the proposal had not known the last result
    change(store, "UPDATE trial SET seen = ?, checksum = NULL WHERE number = ?", json.dumps(seen), number)
    found = replay(store, code=1)
    first = found["differences"][0]  # one result more may leave the next proposal as it was, but not all that follow
    assert first["trial"] >= number, (first, number)
    assert first["params"] != first["now_params"]
    fails("replay", "a", "--store", store, code=1, says="the first is trial %d" % first["trial"])
    fails("replay", "b", "--store", store, code=1, says="b")
