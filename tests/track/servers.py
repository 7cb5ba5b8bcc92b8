"""servers.py - the real tracking servers and official clients for tests, from the environment that `tools/test --servers`
makes (TRAWL_SERVERS names it). A server is started on a free port of 127.0.0.1 with its data in a folder, can be killed and
started again on the same port, and is gone when its `with` ends.
"""
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import tap

START_S = 180  # the first start of mlflow makes its tables; machines of continuous integration are slow
# Nobody is told of these runs, and nobody's settings get in.
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "GIT_PYTHON_REFRESH": "quiet", "WANDB_SILENT": "true",
         "WANDB_ERROR_REPORTING": "false", "BROWSER": "true",
         "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # eight processes more, with nothing to do
FOREIGN = ("MLFLOW_", "TRACKIO_", "WANDB_", "HF_", "HUGGING", "GRADIO_", "TRAWL_WEBHOOK", "CURL_CA_BUNDLE", "SSL_CERT_",
           "REQUESTS_CA_BUNDLE", "NETRC")


def missing():
    """The reason why no real servers are available, or None."""
    where = os.environ.get("TRAWL_SERVERS")
    if not where:
        return os.environ.get("TRAWL_SERVERS_WHY") or "needs the real servers: tools/test --servers"
    return None if program("python").exists() else "no %s" % program("python")


def program(name):
    return pathlib.Path(os.environ["TRAWL_SERVERS"], "bin", name)


def clean_env(home, **more):
    """The environment without settings of trackers and proxies, with `home` as the user's folder."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN) and not k.lower().endswith("_proxy")}
    return {**env, **QUIET, "HOME": str(home), **{k: str(v) for k, v in more.items()}}


def client(script, folder, **env):
    """Runs a script of this folder with the official packages; returns its stdout."""
    path = pathlib.Path(__file__).with_name(script)
    done = subprocess.run([program("python"), path], env=clean_env(folder, **env), cwd=folder, timeout=tap.PATIENCE_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, "%s ended with %d\n%s\n%s" % (script, done.returncode, done.stdout, done.stderr[-4000:])
    return done.stdout


class Server:
    """ready: a path that answers 200 once the server works."""

    ready = "/"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = tap.free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.process = None
        self.log = self.folder / "server.log"

    def command(self):
        """Words and more environment."""
        raise NotImplementedError

    def start(self):
        words, more = self.command()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(list(map(str, words)), cwd=self.folder, env=clean_env(self.folder, **more),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_S
        while True:
            try:
                with urllib.request.urlopen(self.url + self.ready, timeout=5) as reply:
                    if reply.status == 200:
                        return self
            except (OSError, urllib.error.URLError):
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError("%s does not start: %s" % (type(self).__name__, self.log.read_text()[-3000:]))
            time.sleep(0.1)

    def kill(self):
        """Kills the process and its children at once, like a crash."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.kill()

    def call(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **(headers or {})},
                                         method=method)
        with urllib.request.urlopen(request, timeout=tap.PATIENCE_S) as reply:
            return json.loads(reply.read())


class Mlflow(Server):
    ready = "/api/2.0/mlflow/experiments/get?experiment_id=0"  # /health answers long before the tables are ready

    def command(self):
        return [program("mlflow"), "server", "--host", "127.0.0.1", "--port", self.port, "--workers", 1,
                "--backend-store-uri", "sqlite:///%s/mlflow.db" % self.folder,
                "--artifacts-destination", self.folder / "artifacts"], {}

    def api(self, method, path, body=None, **query):
        tail = "?" + urllib.parse.urlencode(query) if query else ""
        return self.call(method, "/api/2.0/mlflow/" + path + tail, body)

    def runs(self, experiment):
        """All runs of an experiment by name: list of the server's objects."""
        number = self.api("GET", "experiments/get-by-name", experiment_name=experiment)["experiment"]["experiment_id"]
        found, token = [], None
        while True:
            body = {"experiment_ids": [number], "max_results": 100, **({"page_token": token} if token else {})}
            page = self.api("POST", "runs/search", body)
            found += page.get("runs", [])
            token = page.get("next_page_token")
            if not token:
                return found

    def history(self, run_id, key):
        """[(step, value)] as the server has them, duplicates too."""
        page = self.api("GET", "metrics/get-history", run_id=run_id, metric_key=key)
        return [(int(m["step"]), float(m["value"])) for m in page.get("metrics", [])]

    def artifact(self, run, path):
        where = urllib.parse.urlsplit(run["info"]["artifact_uri"]).path.strip("/")
        with urllib.request.urlopen(self.url + "/api/2.0/mlflow-artifacts/artifacts/%s/%s" % (where, path)) as reply:
            return reply.read()


class Trackio(Server):
    ready = "/version"
    token = "write-token-of-the-test"

    def command(self):
        return [program("trackio"), "show", "--host", "127.0.0.1"], {
            "TRACKIO_DIR": self.folder / "data", "TRACKIO_WRITE_TOKEN": self.token, "GRADIO_SERVER_PORT": self.port}

    def api(self, name, **kwargs):
        return self.call("POST", "/api/" + name, {"args": [], "kwargs": kwargs},
                         {"x-trackio-write-token": self.token})["data"]

    def rows(self, project, run_id=None):
        """Stored rows, with run_id, step, metrics (a dict, non-finite numbers as floats) and log_id. The
        calls for readers return null for NaN; the table keeps it."""
        where = "" if run_id is None else " where run_id = '%s'" % run_id
        answer = self.api("query_project", project=project, query="select * from metrics%s order by id" % where)
        for row in answer["rows"]:
            metrics = row["metrics"]
            row["metrics"] = {k: float(v) if v in ("NaN", "Infinity", "-Infinity") else v
                              for k, v in (json.loads(metrics) if isinstance(metrics, str) else metrics).items()}
        return answer["rows"]
