"""One training on several hosts, which are processes of this machine: `trawl train --hosts` with `trawl join`, and nodes of a store. The
result is that of as many devices of one host; a host that is killed costs a training alone its end, and a trial only the time since its checkpoint."""
import json
import re
import signal
import socket
import struct
import subprocess
import threading

import tap
from tap import TINY_SWEEP, end, equal, fails, gated, kill, open_gate, rows, run, show, wait_for, write

RUN = ("train", "cartpole", "--train.device", "cpu", "--train.devices", 4, "--train.eval_episodes", 16, "-q", "--json")
HOSTS = ("--hosts", 2, "--listen", "127.0.0.1")


def begin(folder, *words):
    """(the first host's process, what the others join)"""
    log = folder / "lead.log"
    with open(log, "wb") as errors:
        lead = subprocess.Popen([tap.TRAWL, *map(str, words)], stdout=subprocess.PIPE, stderr=errors, text=True)
    tap.started.append(lead)
    return lead, wait_for(lambda: re.search(r"trawl join (\S+/\S{32})\n", log.read_text()), lead)[1]


def background(folder, name, *words):
    with open(folder / (name + ".log"), "ab") as log:
        process = subprocess.Popen([tap.TRAWL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    tap.started.append(process)
    return process


def test_two_hosts_are_as_one(folder):
    short = (*RUN, "--train.total_timesteps", "20k", "--train.threads", 4)
    one = json.loads(run(*short)[0])
    lead, where = begin(folder, *short, *HOSTS, "-o", folder / "two.ckpt")
    run("join", where, "--devices", "cpu")
    out, _ = lead.communicate(timeout=tap.PATIENCE_S)
    two = json.loads(out)
    equal([two[key] for key in ("score", "env_steps", "updates", "stopped")], [one[key] for key in ("score", "env_steps", "updates", "stopped")])
    # its checkpoint is one of a single host, which continues it; two hosts do too, with the same bytes
    more = ("train", "--resume", folder / "two.ckpt", "--train.total_timesteps", "40k", "-q", "--json", "-o")
    alone = json.loads(run(*more, folder / "a.ckpt")[0])
    lead, where = begin(folder, *more, folder / "b.ckpt", *HOSTS)
    run("join", where, "--devices", "cpu")
    equal(json.loads(lead.communicate(timeout=tap.PATIENCE_S)[0])["score"], alone["score"])


def test_what_cannot_be(folder):
    fails(*RUN, "--hosts", 5, code=2, says="each host has one device of them at least")
    fails(*RUN, "--listen", ":4000", code=2, says="give --hosts too")
    fails("node", "--store", folder / "s.db", "--devices", "cpu", "--listen", ":4000", code=2, says="give --hosts too")
    fails("join", code=2, says="give the HOST:PORT/SECRET")
    fails("join", "here", code=2, says="is not HOST:PORT/SECRET")
    fails("join", "127.0.0.1:1/" + 32 * "0", code=1, says="cannot reach 127.0.0.1, port 1")
    run("join", "127.0.0.1:1/" + 32 * "0", "--if-wanted")
    fails("join", "127.0.0.1:1/" + 32 * "0", "--devices", "cuda:7", code=1, says="join: --devices cuda:7: ")
    fails("join", "--store", folder / "s.db", code=1, says="there is no store at")
    fails("node", "--store", folder / "s.db", "--devices", "cpu", "--hosts", 2, "--runs-per-device", 2, code=2, says="one trial at a time")


def test_a_host_that_is_killed_ends_the_training(folder):
    checkpoint, curves = folder / "a.ckpt", folder / "curves"
    for words, begun, advice in (
            (("-o", checkpoint), checkpoint.exists, "continue from the last checkpoint with `trawl train --resume %s --hosts 2`" % checkpoint),
            (("--log-dir", curves), lambda: (curves / "metrics.csv").exists() and (curves / "metrics.csv").read_text().count("\n") > 1,
             "there is no checkpoint to continue from (no -o FILE was given)")):
        lead, where = begin(folder, *RUN, "--train.total_timesteps", "2G", "--train.checkpoint_interval_s", 0.1, *HOSTS, *words)
        other = background(folder, "join", "join", where, "--devices", "cpu")
        wait_for(begun, lead)
        kill(other.pid)
        end(lead, code=1)
        assert re.search("host .* is gone.*; " + re.escape(advice), (folder / "lead.log").read_text())
    lead, where = begin(folder, *RUN, "--train.total_timesteps", "2G", *HOSTS)
    other = background(folder, "join", "join", where, "--devices", "cpu")
    wait_for(lambda: (folder / "join.log").read_text().count("ranks 2 to 3 of 4") == 3, other)
    kill(lead.pid)
    end(other, code=1)


def test_a_host_that_is_stopped_has_the_training_saved(folder):
    lead, where = begin(folder, *RUN, "--train.total_timesteps", "2G", *HOSTS, "-o", folder / "left.ckpt")
    other = background(folder, "join", "join", where, "--devices", "cpu")
    wait_for(lambda: "ranks 2 to 3 of 4" in (folder / "join.log").read_text(), other)
    end(other, signal.SIGTERM, code=130)
    end(lead, code=130)
    assert re.search("interrupted by host .*; the checkpoint is saved, continue with `trawl train --resume ", (folder / "lead.log").read_text())
    assert "the first host has ended its training" in (folder / "join.log").read_text()
    run("eval", folder / "left.ckpt", "--train.eval_episodes", 16)


def test_who_is_there_is_reported(folder):
    port = tap.free_port()
    lead, where = begin(folder, *RUN, "--train.total_timesteps", "20k", "--hosts", 3, "--listen", "127.0.0.1:%d" % port)
    assert where.startswith("127.0.0.1:%d/" % port), where
    other = background(folder, "join", "join", where, "--devices", "cpu")
    wait_for(lambda: "joined: 2 of 3 hosts are here, waiting for 1; join with: trawl join " + where in (folder / "lead.log").read_text(), lead)
    end(other, signal.SIGINT, code=130)
    wait_for(lambda: "left: 1 of 3 hosts are here, waiting for 2" in (folder / "lead.log").read_text(), lead)
    end(lead, signal.SIGINT, code=130)


def test_a_training_that_runs_says_that_it_is_complete(folder):
    lead, where = begin(folder, *RUN, "--train.total_timesteps", "2G", *HOSTS)
    other = background(folder, "join", "join", where, "--devices", "cpu")
    wait_for(lambda: "ranks 2 to 3 of 4" in (folder / "join.log").read_text(), other)
    assert "this host takes part, and waits for %s to begin" % where.split("/")[0] in (folder / "join.log").read_text()
    fails("join", where, "--devices", "cpu", "--patience", tap.PATIENCE_S, code=1, says="refuses this host: its hosts are complete")
    run("join", where, "--devices", "cpu", "--patience", tap.PATIENCE_S, "--if-wanted")
    fails("join", where[:-1] + ("1" if where[-1] == "0" else "0"), "--devices", "cpu", "--patience", tap.PATIENCE_S, code=2, says="the secret is of another training")
    end(lead, signal.SIGINT, code=130)
    end(other)


def test_a_host_without_the_game_is_let_go(folder):
    run("env", "new", "apples", cwd=folder)
    run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    game = folder / "apples.so"
    lead, where = begin(folder, "train", game, *RUN[2:], "--train.total_timesteps", "20k", *HOSTS)
    away = game.rename(folder / "away.so")
    fails("join", where, "--devices", "cpu", code=1, says="this host cannot take part: ")
    wait_for(lambda: re.search("host .* cannot take part: .*; waiting for another host", (folder / "lead.log").read_text()), lead)
    away.rename(game)
    run("join", where, "--devices", "cpu")
    end(lead)


def test_nodes_find_each_other_in_the_store(folder):
    store = folder / "s.db"
    text = gated(folder, checkpoint_interval_s=0.2).replace("threads = 1", "devices = 2")
    tap.daemon(store, "--devices", "none")
    background(folder, "sweep", "sweep", write(folder, "a.ini", text), "--name", "a", "--trials", 2, "--store", store)
    lead = background(folder, "lead", "node", "--store", store, "--devices", "cpu", "--name", "lead", "--spool", folder / "spool", *HOSTS)
    other = background(folder, "join", "join", "--store", store, "--devices", "cpu")
    part = wait_for(lambda: rows(store, "SELECT 1 FROM checkpoint") and tap.children(other.pid))[0]
    kill(part)  # the part of a trial: the trial is queued again, and continues with a new one
    wait_for(lambda: rows(store, "SELECT 1 FROM trial WHERE attempt > 1"))
    open_gate(folder)
    wait_for(lambda: tap.n_done(store) == 2)
    equal(len({(t["env_steps"], t["device"]) for t in show(store)["trials"]}), 1)  # with the same threads too
    assert "ranks 1 to 1 of 2" in (folder / "join.log").read_text()
    words = (folder / "lead.log").read_text()
    assert "has joined: 2 of 2 hosts are here" in words and rows(store, "SELECT meets FROM node")[0][0].split("/")[1] not in words, words
    for process in (other, lead):
        end(process, signal.SIGTERM, code=130)


class Answerer(threading.Thread):
    """A training that answers all who greet it with one number (hosts.h: -1 refused, -2 complete)."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.socket, self.number, self.n = socket.create_server(("127.0.0.1", 0)), number, 0
        self.where = "127.0.0.1:%d/%s" % (self.socket.getsockname()[1], 32 * "0")
        self.start()

    def run(self):
        while True:
            with self.socket.accept()[0] as caller:
                self.n += 1
                caller.recv(244, socket.MSG_WAITALL)
                caller.sendall(struct.pack("i400s", self.number, b"for a test"))


def test_a_refusal_is_asked_for_once(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "a.ini", TINY_SWEEP), "--name", "a", "--trials", 1, "--store", store, "-q")
    refuses, complete = Answerer(-1), Answerer(-2)
    for name, answerer in ("a", refuses), ("b", complete):
        tap.change(store, "INSERT INTO node VALUES (?, 'h', 'd', '', 1, 0, 1 << 50, ?)", name, answerer.where)
    other = background(folder, "join", "join", "--store", store, "--devices", "cpu")
    wait_for(lambda: complete.n >= 3, other)
    end(other, signal.SIGTERM, code=130)
    equal(refuses.n, 1)
    equal((folder / "join.log").read_text().count("refuses this host"), 1)


if __name__ == "__main__":
    tap.main(__name__)
