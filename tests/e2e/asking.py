"""asking.py - what the tests of ask/tell share: a study that only clients train, a daemon and a server beside its store."""
import contextlib
import json
import signal
import subprocess

import serve_client
import tap
from tap import daemon, end, run, start, wait_for, write

# Parameters of no program in particular.
OUTSIDE = """
[sweep]
method = sobol
devices = none
lease_s = 60
confirm = 0
""" + tap.space("""
Learning-Rate: type = float; distribution = log; min = 0.001; max = 0.1
layers: type = int; min = 1; max = 8
opt: type = categorical; values = adam, sgd
momentum: type = float; min = 0; max = 1; when = opt == sgd
""") + """
[param]
epochs = 3
"""


class Server(serve_client.Server):
    """`trawl serve --control` beside a store, and what programs send to it."""

    def __init__(self, store, *more, **options):
        super().__init__(store, "--control", *more, **options)

    def post(self, path, body, **headers):
        text = body if isinstance(body, (bytes, str)) else json.dumps(body)
        data = text.encode() if isinstance(text, str) else text
        status, _, answer = self.request("/api/v1/studies/" + path, "POST", data, **{"Content_Type": "application/json", **headers})
        return status, json.loads(answer)

    def ok(self, path, body, **headers):
        status, answer = self.post(path, body, **headers)
        assert status == 200, (path, body, status, answer)
        return answer

    def ask(self, client, study="a"):
        """However long it takes to choose it."""
        def look():
            answer = self.ok(study + "/trials:ask", {"client": client})
            return answer["trial"] is not None and answer
        return wait_for(look)

    def report(self, trial, study="a", **body):
        return self.ok("%s/trials/%d:report" % (study, trial["trial"]), {"lease": trial["lease"]["token"], **body})

    def tell(self, trial, study="a", **body):
        return self.ok("%s/trials/%d:tell" % (study, trial["trial"]), {"lease": trial["lease"]["token"], **body})


def submit(folder, store, text, trials=20, name="a"):
    config = write(folder, name + ".ini", text)
    watcher = start("sweep", config, "--store", store, "--name", name, "--trials", trials, "-q")
    wait_for(lambda: subprocess.run([tap.TRAWL, "show", name, "--store", str(store)], capture_output=True).returncode == 0, watcher)
    end(watcher, signal.SIGINT, 130)  # only watching ends


@contextlib.contextmanager
def served(folder, text=OUTSIDE, trials=20):
    """A server and its store, whose daemon runs a study `a`; both are whole at the end."""
    store = folder / "s.db"
    controller = daemon(store)
    server = Server(store)
    submit(folder, store, text, trials)
    yield server, store
    server.end()
    end(controller, signal.SIGTERM)
    run("check", store)
