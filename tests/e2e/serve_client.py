"""serve_client.py - clients of `trawl serve` for the tests: a server over a made-up study, requests, event streams, games that play."""

import atexit
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import tap

S = "/api/v1/studies/big"


def make_study(store, name, trials, running=0):
    subprocess.run([os.environ["MAKE_STUDY"], str(store), name, str(trials), str(running)], check=True)


class Server:
    """`trawl serve`; token: where the server wants one, the tests' folders are private."""

    def __init__(self, store, *args, port=0, token=False, env=None):
        more = [] if token or "--bind" in args else ["--no-token"]
        def begin():
            self.process = tap.start("serve", "--store", store, "--port", port, *more, *args, env=env)
            self.url = self.process.stdout.readline().strip()
            said = "" if self.url else self.process.communicate()[1]
            assert self.url or port != 0 and "is in use" in said, said
            return self.url
        tap.wait_for(begin)  # a server's last port may be that of another program's connection for a moment
        found = re.match(r"(http://[^:/]+:(\d+))/(?:\?token=(\w+))?", self.url)
        assert found, self.url
        self.origin, self.port, self.token = found[1], int(found[2]), found[3]

    def end(self):
        _, err = tap.end(self.process, signal.SIGTERM)
        assert "ERROR: " not in err and "WARNING: " not in err, err  # of a sanitizer

    def request(self, path, method="GET", body=None, host=None, **headers):
        """Status, headers, body; names of headers have '_' for '-'."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tap.PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or "localhost:%d" % self.port)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, want=200, **headers):
        status, head, body = self.request(path, **headers)
        assert status == want, "%s: %d, not %d: %r" % (path, status, want, body[:500])
        return json.loads(body) if head["content-type"].startswith("application/json") else body

    def wait(self, path, holds=lambda answer: True):
        """The first answer that holds, once there is one: the server follows a store, and models take their time."""
        def look():
            status, _, body = self.request(path)
            answer = json.loads(body) if status == 200 else None
            return answer is not None and holds(answer) and [answer]
        return tap.wait_for(look, self.process)[0]

    def fails(self, path, want, says, **more):
        status, head, body = self.request(path, **more)
        answer = json.loads(body)
        assert status == want and says in answer["error"] + " " + (answer["hint"] or ""), (status, answer)
        hardened(head)
        return answer

    def raw(self, data, wait=tap.PATIENCE_S):
        """All bytes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    got += part
            return got


@contextlib.contextmanager
def serving(store, *args, **options):
    server = Server(store, *args, **options)
    yield server
    assert server.process.poll() is None, "the server ended: %s" % server.process.stderr.read()
    server.end()


big_store = None


def big(folder):
    """A store with a study of 1000 trials, made once; the test gets a copy."""
    global big_store
    if big_store is None:
        big_store = folder.parent / ("trawl-serve-%d.db" % os.getpid())
        make_study(big_store, "big", 1000)
    shutil.copy(big_store, folder / "s.db")
    return folder / "s.db"


def hardened(head):
    csp = head["content-security-policy"]
    assert "script-src 'self'" in csp and "unsafe" not in csp and "frame-ancestors 'none'" in csp, csp
    assert head["x-content-type-options"] == "nosniff" and head["referrer-policy"] == "no-referrer"


class Stream:
    """Events of an open stream, as (type, data, id)."""

    def __init__(self, server, query="", **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=tap.PATIENCE_S)
        self.connection.request("GET", "/api/v1/events" + query, headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200 and self.answer.getheader("Content-Type") == "text/event-stream"

    def next(self):
        event = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line == "" and "event" in event:
                return event["event"], json.loads(event["data"]), event.get("id")
            if ": " in line and not line.startswith(":"):
                key, value = line.split(": ", 1)
                event[key] = value

    def until(self, kind, **fields):
        while True:
            event = self.next()
            if event[0] == kind and all(event[1].get(k) == v for k, v in fields.items()):
                return event

    def close(self):
        self.connection.close()


def control(s, body, csrf, **more):
    headers = {"Content_Type": "application/json", "Origin": "http://localhost:%d" % s.port, "X_Trawl_Csrf": csrf}
    headers.update(more)
    status, _, answer = s.request(S + "/control", method="POST", body=body, **{k: v for k, v in headers.items() if v is not None})
    return status, json.loads(answer)


def open_play(s, path, headers={}):
    connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=tap.PATIENCE_S)
    connection.request("GET", path, headers=headers)
    return connection, connection.getresponse()


def events_of(answer):
    kind = None
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])


def watch(s, path, n):
    connection, answer = open_play(s, path)
    begin, frames = None, []
    for kind, data in events_of(answer):
        if kind == "begin":
            begin = data
        elif kind == "frame":
            frames.append(data)
        else:
            assert kind == "episode", (kind, data)
        if len(frames) == n:
            break
    connection.close()
    return begin, frames


def watch_all(s, path):
    connection, answer = open_play(s, path)
    events = list(events_of(answer))
    connection.close()
    return answer.status, events


def forget_big():
    for suffix in ("", "-wal", "-shm", ".lock"):
        with contextlib.suppress(FileNotFoundError):
            if big_store is not None:
                os.remove(str(big_store) + suffix)


atexit.register(forget_big)
