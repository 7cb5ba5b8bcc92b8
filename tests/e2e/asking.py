"""asking.py - what the tests of ask/tell share: a study that only clients train, a daemon and a server beside its store."""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess

import tap
from tap import equal, run, start, wait_for, write

# Parameters of no program in particular.
OUTSIDE = """
[sweep]
method = sobol
devices = none
lease_s = 60
confirm = 0

[sweep.Learning-Rate]
type = float
distribution = log
min = 0.001
max = 0.1

[sweep.layers]
type = int
min = 1
max = 8

[sweep.opt]
type = categorical
values = adam, sgd

[sweep.momentum]
type = float
min = 0
max = 1
when = opt == sgd

[param]
epochs = 3
"""


class Server:
    """`trawl serve --control` beside a store, and what programs send to it."""

    def __init__(self, store, *more, port=0):
        self.process = start("serve", "--store", store, "--port", port, "--control", *more, *([] if "--bind" in more else ["--no-token"]))
        self.url = self.process.stdout.readline().strip()
        found = re.match(r"http://([^:/]+):(\d+)/(?:\?token=(\w+))?", self.url)
        assert found, (self.url, self.process.poll())
        self.port, self.token = int(found.group(2)), found.group(3)

    def post(self, path, body, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tap.PATIENCE_S)
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        with contextlib.closing(connection):
            connection.request("POST", "/api/v1/studies/" + path, text, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def ok(self, path, body, **headers):
        status, answer = self.post(path, body, **headers)
        assert status == 200, (path, body, status, answer)
        return answer

    def get(self, path, holds=lambda answer: True):
        """The answer, once the server has seen what the controller wrote."""
        found = []

        def look():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tap.PATIENCE_S)
            with contextlib.closing(connection):
                connection.request("GET", path)
                answer = connection.getresponse()
                found.append(json.loads(answer.read()))
                return answer.status == 200 and holds(found[-1])
        wait_for(look)
        return found[-1]

    def ask(self, client, study="a"):
        """A trial, however long it takes to choose it."""
        found = []
        wait_for(lambda: found.append(self.ok(study + "/trials:ask", {"client": client})) or found[-1]["trial"] is not None)
        return found[-1]

    def report(self, trial, study="a", **body):
        return self.ok("%s/trials/%d:report" % (study, trial["trial"]), {"lease": trial["lease"]["token"], **body})

    def tell(self, trial, study="a", **body):
        return self.ok("%s/trials/%d:tell" % (study, trial["trial"]), {"lease": trial["lease"]["token"], **body})

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=tap.PATIENCE_S)
        equal(self.process.returncode, 0)
        assert "WARNING: " not in err and "ERROR: " not in err, err


def daemon(store):
    process = start("daemon", "--store", store)
    wait_for(lambda: pathlib.Path(str(store) + ".sock").exists(), process)
    return process


def submit(folder, store, text, trials=20, name="a"):
    config = write(folder, name + ".ini", text)
    watcher = start("sweep", config, "--store", store, "--name", name, "--trials", trials, "-q")
    wait_for(lambda: subprocess.run([tap.TRAWL, "show", name, "--store", str(store)], capture_output=True).returncode == 0, watcher)
    watcher.send_signal(signal.SIGINT)  # only watching ends
    watcher.communicate(timeout=tap.PATIENCE_S)


@contextlib.contextmanager
def served(folder, text=OUTSIDE, trials=20):
    """A server and its store, whose daemon runs a study `a`; both are whole at the end."""
    store = folder / "s.db"
    controller = daemon(store)
    server = Server(store)
    submit(folder, store, text, trials)
    yield server, store
    server.end()
    controller.send_signal(signal.SIGTERM)
    controller.communicate(timeout=tap.PATIENCE_S)
    equal(controller.returncode, 0)
    run("check", store)


def state_of(store):
    return json.loads(run("ls", "--store", store, "--json")[0])[0]["state"]
