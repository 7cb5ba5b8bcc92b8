"""trainers.py - two trainers of others, tuned as they stand: CleanRL's PPO with one more print line, and Stable-Baselines3's.

For tools/nightly, which installs their packages; not part of `meson test`. usage: run_tests.py trainers.py TRAWL [NAME ...], with
TRAWL_TRAINERS_PYTHON, a Python that has torch, gymnasium, tyro, tensorboard and stable-baselines3, and TRAWL_CLEANRL, the file cleanrl/ppo.py.
TRAWL_TRAINERS_TRIALS: of each (8)."""
import os
import pathlib
import subprocess
import sys

from asking import Server
from tap import equal, run, show, write

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "own"
PYTHON, CLEANRL = os.environ.get("TRAWL_TRAINERS_PYTHON"), os.environ.get("TRAWL_CLEANRL")
TRIALS, TRIAL_S = int(os.environ.get("TRAWL_TRAINERS_TRIALS", "8")), 600
if not PYTHON or not CLEANRL:
    sys.exit("trainers.py: TRAWL_TRAINERS_PYTHON and TRAWL_CLEANRL are needed; tools/nightly sets them")
LEARNED = 80  # a random policy's episodes have a return of 22 on average; CartPole's best is 500
PRINTED = "print(f\"global_step={global_step}, episodic_return={info['episode']['r']}\")"
# The one line more, in the block of the line above, as examples/own/ppo_cartpole.ini has it.
PATCH = r"s/^\( *\)print(f\"global_step={global_step}, episodic_return=.*$/&\n\1print(f\"TRAWL score={info['episode']['r'][0]} step={global_step}\")/"


def config(folder, name, *replaced):
    """The example, small, with the Python that has the packages."""
    text = (EXAMPLES / name).read_text().replace("python3", PYTHON)
    for was, now in (("budget = 2h", "trials = %d" % TRIALS), *replaced):
        assert text.count(was) == 1, (was, text)
        text = text.replace(was, now)
    return write(folder, name, text)


def front_of_the_page(store):
    """What the page of the study draws."""
    server = Server(store)
    front = server.wait("/api/v1/studies/a/front")
    server.end()
    return front


def tune(folder, path):
    store = folder / "own.db"
    run("sweep", path, "--store", store, "--name", "a", "--seed", 1, "-q", cwd=folder, timeout=TRIALS * TRIAL_S,
        env={**os.environ, "OMP_NUM_THREADS": "1"})  # networks this small are slower on several cores
    study = show(store, "a")
    trials = study["trials"]
    equal([t["state"] for t in trials], ["done"] * TRIALS)
    front = front_of_the_page(store)
    equal(sorted(p["trial"] for p in front["points"]), [t["number"] for t in trials if t["on_front"]])
    print("# scores %s, cost %s s; front %s" % ([round(t["score"]) for t in trials], [round(t["cost_s"]) for t in trials],
                                               [p["trial"] for p in front["points"]]))
    assert front["points"] and max(t["score"] for t in trials) > LEARNED, front
    return trials


def test_cleanrl_with_one_line_more(folder):
    script = folder / "ppo.py"
    script.write_text(pathlib.Path(CLEANRL).read_text())
    assert PRINTED in script.read_text(), "%s prints episodes in another way" % CLEANRL
    subprocess.run(["sed", "-i", PATCH, script], check=True)
    before, after = pathlib.Path(CLEANRL).read_text().splitlines(), script.read_text().splitlines()
    added = [line for line in after if "TRAWL" in line]
    equal((len(after), len(added)), (len(before) + 1, 1))
    equal([line for line in after if line not in added], before)
    trials = tune(folder, config(folder, "ppo_cartpole.ini", ("min = 20000", "min = 10000"), ("max = 200000", "max = 40000")))
    assert all(t["env_steps"] > 0 for t in trials), trials


def test_stable_baselines3(folder):
    (folder / "sb3_cartpole.py").write_text((EXAMPLES / "sb3_cartpole.py").read_text())
    trials = tune(folder, config(folder, "sb3_cartpole.ini", ("max = 100000", "max = 20000")))
    for t in trials:
        assert t["env_steps"] >= t["params"]["param.total_timesteps"], t
