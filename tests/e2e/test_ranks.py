"""train.devices: several devices train one policy, here threads of a CPU; alone, resumed with another number, and in a sweep; a
rank that hangs costs a trial and is named."""
import json
import re

from tap import TINY_SWEEP, equal, fails, run, show, write

RUN = ("train", "cartpole", "--train.device", "cpu", "--train.total_timesteps", "20k", "--train.eval_episodes", 16, "-q", "--json")
# of the game that `trawl env new` writes: of all instances on the machine one, once, does not come back from a step
HANGS = ("state->apple_y++;", """state->apple_y++;
    {
        extern int open(const char *, int, ...);
        extern unsigned sleep(unsigned);
        static _Thread_local int n;
        if (++n == 400 && open("%s", 0301, 0600) >= 0)
            sleep(600);
    }""")


def train(*words):
    return json.loads(run(*words)[0])


def test_a_run_is_continued_by_another_number(folder):
    checkpoint = folder / "a.ckpt"
    two = train(*RUN, "--train.devices", 2, "-o", checkpoint)
    equal((two["env_steps"], two["stopped"]), (19968, False))
    equal(train(*RUN, "--train.devices", 2)["score"], two["score"])  # the same bytes
    equal(json.loads(run("eval", checkpoint, "--json", "--episodes", 16)[0])["episodes"], 16)
    more = train("train", "--resume", checkpoint, "--train.devices", 4, "--train.total_timesteps", "40k", "-q", "--json")
    equal(more["env_steps"], 39936)
    fails(*RUN[:2], "--train.devices", 3, code=2, says="train.devices 3 cannot share evenly; try total_agents 129")


def test_a_sweep_searches_the_number(folder):
    store = folder / "s.db"
    text = TINY_SWEEP + "\n[sweep.train.devices]\nvalues = 1, 2, 4\n"
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 6, "-q", "--sweep.method", "random", "--sweep.cost",
        "env_steps")
    trials = show(store, "a")["trials"]
    equal({t["state"] for t in trials}, {"done"})
    numbers = [int(t["params"]["train.devices"]) for t in trials]
    assert len(set(numbers)) > 1 and set(numbers) <= {1, 2, 4}, numbers
    several = next(t for t in trials if int(t["params"]["train.devices"]) > 1)
    run("export", "a", "--store", store, "--pick", "trial=%d" % several["number"], "-o", folder / "t.ini")
    equal(train("train", folder / "t.ini", "--json", "-q")["env_steps"], several["env_steps"])
    run("sweep", write(folder, "two.ini", TINY_SWEEP.replace("threads = 1", "devices = 2")), "--store", store, "--name", "b", "--trials", 1, "-q")
    run("export", "b", "--store", store, "--pick", "trial=0", "-o", folder / "b.ini")  # of both devices, as train.threads is
    equal(int(re.search(r"(?m)^threads = (\d+)", (folder / "b.ini").read_text())[1]) % 2, 0)


def test_a_rank_that_hangs_costs_a_trial(folder):
    run("env", "new", "apples", cwd=folder)
    header = folder / "apples.h"
    text = header.read_text()
    equal(text.count(HANGS[0]), 1)
    header.write_text(text.replace(HANGS[0], HANGS[1] % (folder / "hung")))
    run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    config = write(folder, "s.ini", """[env]
name = ./apples.so
[train]
device = cpu
devices = 2
rank_timeout_s = 10
threads = 2
total_agents = 8
horizon = 16
minibatch_size = 64
total_timesteps = 8192
eval_episodes = 8
[sweep]
metric = perf
devices = cpu
[sweep.train.learning_rate]
min = 0.001
max = 0.01
""")
    store = folder / "s.db"
    run("sweep", config, "--store", store, "--name", "a", "--trials", 4, "-q")
    trials = show(store, "a")["trials"]
    failed = [t for t in trials if t["state"] == "failed"]
    equal(len(failed), 1)
    assert re.search(r"rank [01] has not come back for 10 s, while the others of 2 waited", failed[0]["reason"]), failed[0]
    assert sum(t["state"] == "done" for t in trials) >= 3, trials
    (folder / "hung").unlink()
    fails("train", config, "-q", code=1, says="has not come back for 10 s")
