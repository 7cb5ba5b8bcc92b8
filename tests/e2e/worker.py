"""worker.py - plays the controller of one `trawl worker`: JSON lines over a socket, protocol 4 (sweep/launch/proto.h)."""
import json
import os
import socket
import struct
import subprocess
import time

import tap


class Worker:
    def __init__(self, trawl, config, lanes=1, device="cpu", stderr=None, **more):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.process = subprocess.Popen([trawl, "worker"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=stderr, close_fds=False,
                                        preexec_fn=lambda: os.dup2(theirs.fileno(), 3))
        tap.started.append(self.process)
        theirs.close()
        self.socket, self.buffer, self.results, self.others = ours, b"", {}, []
        self.send(type="open", config=config, lanes=lanes, device=device, **more)
        self.greeting = self.receive(tap.PATIENCE_S)
        self.hello = self.receive(tap.PATIENCE_S)
        self.reason = self.hello.get("reason")

    def send(self, **message):
        self.socket.sendall((json.dumps(message) + "\n").encode())

    def receive(self, timeout=tap.PATIENCE_S):
        """The next message; None: the worker has closed its end, or was silent until the timeout."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                got = self.socket.recv(1 << 16)
            except (socket.timeout, ConnectionResetError):
                return None
            if not got:
                return None
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def run(self, trial, config, attempt=1, **more):
        self.send(type="run", trial=trial, attempt=attempt, number=trial, study="test", config=config,
                  **{"metric": "perf", **more})

    def wait(self, until, timeout=tap.PATIENCE_S):
        """Reads messages until one satisfies until(message), and returns it; results and the others are kept."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.receive(max(0.01, deadline - time.monotonic()))
            assert message is not None, "waited in vain; the worker's exit code: %r" % self.process.poll()
            if message["type"] == "result":
                assert message["trial"] not in self.results, "two results: %r" % message
                self.results[message["trial"]] = message
            else:
                self.others.append(message)
            if until(message):
                return message

    def result(self, trial, timeout=tap.PATIENCE_S):
        if trial not in self.results:
            self.wait(lambda m: m["type"] == "result" and m["trial"] == trial, timeout)
        return self.results[trial]

    def messages(self, type, trial=None):
        return [m for m in self.others if m["type"] == type and (trial is None or m["trial"] == trial)]

    def close(self, timeout=tap.PATIENCE_S):
        """Sends "exit"; returns the exit code."""
        try:
            self.send(type="exit")
        except OSError:
            pass
        try:
            return self.process.wait(timeout)
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.socket.close()


def checkpoint_sections(path):
    """Name -> bytes of a checkpoint file (trainer/checkpoint.c)."""
    data = open(path, "rb").read()
    at, sections = 32, {}
    n = struct.unpack_from("<I", data, 24)[0]
    for _ in range(n):
        name, size = struct.unpack_from("<24sQ", data, at)
        at += 32
        sections[name.rstrip(b"\0").decode()] = data[at:at + size]
        at += (size + 15) // 16 * 16
    return sections
