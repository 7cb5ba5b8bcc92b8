"""loopback_slurm.py - a real Slurm on loopback: munged, slurmctld and slurmd with one node, on ports of their own, in a temporary
folder. Partition low gives way to partition high, with 120 s of grace, of which a worker takes what it needs to save."""
import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import tap

SBIN = os.environ["PATH"] + ":/usr/sbin"
CONF = """ClusterName=loopback
SlurmctldHost=%(host)s(127.0.0.1)
SlurmctldPort=%(port_ctld)d
SlurmdPort=%(port_d)d
SlurmUser=%(user)s
SlurmdUser=%(user)s
AuthType=auth/munge
AuthInfo=socket=%(at)s/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=%(at)s/state
SlurmdSpoolDir=%(at)s/spool
SlurmctldPidFile=%(at)s/slurmctld.pid
SlurmdPidFile=%(at)s/slurmd.pid
SlurmctldLogFile=%(at)s/slurmctld.log
SlurmdLogFile=%(at)s/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
JobRequeue=1
NodeName=%(host)s NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=120
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Slurm:
    def __init__(self):
        missing = [name for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel") if shutil.which(name, path=SBIN) is None]
        if missing:
            raise tap.Skip("not installed: %s (slurm-wlm, munge)" % ", ".join(missing))
        self.at = tempfile.mkdtemp(prefix="trawl-slurm-")
        self.processes = {}
        os.chmod(self.at, 0o711)  # munged wants a way to its socket
        for name in ("state", "spool"):
            os.mkdir(self.at + "/" + name)
        with open(self.at + "/munge.key", "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(self.at + "/munge.key", 0o600)
        self.host = socket.gethostname().split(".")[0]
        with open(self.at + "/slurm.conf", "w") as conf:
            conf.write(CONF % {"host": self.host, "user": getpass.getuser(), "at": self.at, "port_ctld": tap.free_port(), "port_d": tap.free_port()})
        self.env = dict(os.environ, SLURM_CONF=self.at + "/slurm.conf", PATH=SBIN)
        for name in [name for name in self.env if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.env[name]
        self.begin("munged", "--foreground", "--force", *("--%s=%s/munge.%s" % (word, self.at, end) for word, end in (
            ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))))
        self.wait(lambda: os.path.exists(self.at + "/munge.socket"), "munged")
        self.begin("slurmctld", "-D")
        self.begin("slurmd", "-D")
        self.wait(self.is_ready, "slurmd")

    def begin(self, name, *words):
        self.processes[name] = subprocess.Popen([shutil.which(name, path=SBIN), *words], env=self.env, stdin=subprocess.DEVNULL,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def wait(self, condition, name):
        """A Slurm that does not start here is not a fault of Trawl's: a skip, with the last line of its log."""
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline or self.processes[name].poll() is not None:
                log = "%s/%s.log" % (self.at, name)
                words = open(log).read().strip().splitlines()[-1:] if os.path.exists(log) else ["no log"]
                self.end()
                raise tap.Skip("%s does not start here: %s" % (name, words))
            time.sleep(0.1)

    def call(self, *words):
        done = subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=tap.PATIENCE_S)
        return done.stdout.strip() if done.returncode == 0 else ""

    def is_ready(self):
        return self.call("sinfo", "-h", "-p", "low", "-o", "%t") == "idle"

    def jobs(self, state=None):
        return self.call("squeue", "-h", "-n", "trawl", "-o", "%i", *(["-t", state] if state else [])).split()

    def end(self):
        self.call("scancel", "-u", getpass.getuser())
        for process in reversed(list(self.processes.values())):
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(self.at, ignore_errors=True)
