"""Workers as jobs of a real Slurm on loopback: a sweep, a preemption, a controller that is a batch job itself, and kill -9 of controller,
srun, worker and slurmd."""
import atexit
import os
import signal
import time

import loopback_slurm
import tap
import test_remote
from tap import TINY_SWEEP, end, equal, gated, open_gate, rows, run, show, start, wait_for, write

N_KILLS = int(os.environ.get("TRAWL_REMOTE_KILLS", 12)) // 2
PROGRAM = ["--sweep.remote-program", tap.TRAWL]
running = []  # one Slurm for all tests: it takes seconds to start


def slurm():
    if not running:
        running.append(loopback_slurm.Slurm())
        atexit.register(running[0].end)
    return running[0]


def env_of(s, folder):
    return dict(s.env, TMPDIR=str(folder))


def sweep_here(folder, config, trials):
    run("sweep", config, "--store", folder / "here.db", "--name", "a", "--trials", trials, "--devices", "cpu")


def test_trials_in_jobs_have_the_bytes_of_here(folder):
    s = slurm()
    config = write(folder, "s.ini", TINY_SWEEP)
    run("sweep", config, "--store", folder / "far.db", "--name", "a", "--trials", 8, "--devices", "slurm:cpus-per-task=1*2", *PROGRAM,
        env=env_of(s, folder))
    sweep_here(folder, config, 8)
    far = show(folder / "far.db", "a")["trials"]
    assert {t["slot"] for t in far} <= {"slurm/0", "slurm/1"}, far
    here = {t["number"]: t["score"] for t in show(folder / "here.db", "a")["trials"]}
    equal({t["state"] for t in far}, {"done"})
    equal(far[0]["score"], here[0])
    wait_for(lambda: not s.jobs())


def test_a_job_that_waits_is_cancelled_with_the_sweep(folder):
    s = slurm()
    process = start("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", folder / "s.db", "--name", "a", "--trials", 2, "--devices",
                    "slurm:cpus-per-task=4/begin=now+1hour", *PROGRAM, env=env_of(s, folder))
    wait_for(lambda: s.jobs("PD"), process)
    end(process, signal.SIGINT, 130)
    wait_for(lambda: not s.jobs())


def test_a_preempted_job_saves_and_its_trial_continues_in_another(folder):
    s = slurm()
    config = write(folder, "long.ini", gated(folder))
    process = start("sweep", config, "--store", folder / "far.db", "--name", "a", "--trials", 1, "--devices", "slurm:cpus-per-task=1",
                    *PROGRAM, env=env_of(s, folder))
    wait_for(lambda: test_remote.has_points(folder / "far.db"), process)
    first, = s.jobs()
    s.call("srun", "-p", "high", "-n", "4", "true")  # all of the node
    open_gate(folder)
    _, words = end(process)
    assert "was sent away, its trials are saved" in words, words
    trial, = show(folder / "far.db", "a")["trials"]
    equal((trial["state"], trial["attempt"]), ("done", 2))
    sweep_here(folder, config, 1)
    equal(test_remote.curves(folder / "far.db"), test_remote.curves(folder / "here.db"))


def test_a_launcher_keeps_as_many_nodes_as_trials_want(folder):
    """sweep.launcher: arrays of nodes; a preempted one saves and gives back, its trial continues in another; those that no trial wants are
    cancelled while they wait."""
    s = slurm()
    config = write(folder, "long.ini", gated(folder))
    process = start("sweep", config, "--store", folder / "far.db", "--name", "a", "--trials", 2, "--devices", "none", "--sweep.launcher",
                    "slurm:cpus-per-task=2*5", *PROGRAM, env=dict(env_of(s, folder), XDG_STATE_HOME=str(folder)))
    ours = lambda *state: s.call("squeue", "-h", "-r", "-o", "%j %i", *state).count("trawl-")
    wait_for(lambda: ours() == 2, process)  # of five that may be, two are wanted
    wait_for(lambda: rows(folder / "far.db", "SELECT count(DISTINCT trial_id) FROM metric") == [(2,)], process)
    s.call("srun", "-p", "high", "-n", "4", "true")  # all of the node: both jobs are preempted
    open_gate(folder)
    end(process)
    trials = show(folder / "far.db", "a")["trials"]
    equal([t["state"] for t in trials], ["done", "done"])
    assert min(t["attempt"] for t in trials) > 1, trials  # more than 2 for what the first job gave back and the second took before its signal
    sweep_here(folder, config, 2)
    equal(test_remote.curves(folder / "far.db"), test_remote.curves(folder / "here.db"))
    wait_for(lambda: not ours("-t", "PD"))
    s.call("scancel", "-u", loopback_slurm.getpass.getuser())  # nodes that run would end by themselves after a minute
    process = start("sweep", config, "--store", folder / "b.db", "--name", "a", "--trials", 3, "--devices", "none", "--sweep.launcher",
                    "slurm:cpus-per-task=4/begin=now+1hour*3", *PROGRAM, env=env_of(s, folder))
    wait_for(lambda: ours("-t", "PD") == 3, process)
    end(process, signal.SIGINT, 130)
    wait_for(lambda: not ours("-t", "PD"))


def test_a_controller_in_a_batch_job_is_requeued_and_continues(folder):
    """The script of docs/many-machines.md."""
    s = slurm()
    write(folder, "long.ini", gated(folder))
    script = write(folder, "night.sh", """#!/bin/bash
#SBATCH --job-name=trawl --requeue --signal=B:USR1@120 --open-mode=append
trap 'kill -USR1 $sweep' USR1
what="long.ini --name night"
%(trawl)s show night --store night.db >/dev/null 2>&1 && what="--resume night"
%(trawl)s sweep $what --store night.db --trials 1 --devices cpu &
sweep=$!
wait $sweep  # until it ends, or the signal comes
wait $sweep
[ $? = 130 ] && scontrol requeue $SLURM_JOB_ID
""" % {"trawl": tap.TRAWL})
    job = s.call("sbatch", "--parsable", "--chdir", str(folder), "--output", str(folder / "night.log"), str(script))
    assert job.isdigit(), job
    wait_for(lambda: test_remote.has_points(folder / "night.db"))
    s.call("scancel", "--batch", "--signal=USR1", job)  # as Slurm does before the job's time is over
    wait_for(lambda: "interrupted" in (folder / "night.log").read_text())
    wait_for(lambda: s.call("scontrol", "show", "job", job).find("Restarts=1") > 0)
    open_gate(folder)
    wait_for(lambda: not s.jobs())
    trial, = show(folder / "night.db", "night")["trials"]
    equal((trial["state"], trial["attempt"]), ("done", 2))


class Jobs(test_remote.Remote):
    def devices(self):
        return ["--devices", "slurm:cpus-per-task=1*2", *PROGRAM]

    def env(self):
        return env_of(self.sshd, self.folder)

    def slurmd(self):
        daemon = self.sshd.processes["slurmd"]
        daemon.kill()
        daemon.wait()
        time.sleep(self.moments.uniform(0, 0.5))
        self.sshd.begin("slurmd", "-D")
        self.goes_on()


def test_kills_at_random_moments_lose_and_double_nothing(folder):
    test_remote.kill_at_random(folder, slurm(), Jobs, ("controller", "ssh", "worker", "slurmd"), N_KILLS)
