"""fake_mlflow.py - an MLflow tracking server in memory, stricter than the real one.

The real server takes what it cannot read and stores something else: NaN without quotes makes a zero at step 0, an unknown
status or a fraction as a time stamp is passed over. Here each of these is a 400, and so is whatever an older server would
refuse: batches over its limits, bodies over a million bytes, keys with a colon, a parameter that changes, tags over 5000
characters. Metrics are a set of (key, time stamp, step, value), as in its SQL store; what was sent twice is counted.
"""
import base64
import collections
import json
import math
import os.path
import re
import urllib.parse

from faults import Fake, Reply

KEY = re.compile(r"[A-Za-z0-9_./ -]{1,250}\Z")
FILTER = re.compile(r"tags\.[`\"]?([A-Za-z0-9_.]+)[`\"]? = '([^']*)'\Z")
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
BODY_MAX = 1000000
STATUS = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")


class Refused(Exception):
    def __init__(self, code, name, text):
        super().__init__(text)
        self.code, self.name = code, name


def invalid(text):
    return Refused(400, "INVALID_PARAMETER_VALUE", text)


def need(condition, text, *args):
    if not condition:
        raise invalid(text % args)


def whole(value):
    return type(value) is int and -2**63 <= value < 2**63


def check_key(key, what):
    need(isinstance(key, str) and KEY.match(key), "%s key %r", what, key)
    need(os.path.normpath(key) == key and not key.startswith("/") and key not in (".", "..") and not key.startswith("../"),
         "%s key %r would resolve to another name", what, key)


def check_fields(body, required, optional=()):
    need(isinstance(body, dict), "a JSON object is wanted")
    for name in required:
        need(name in body, "%s is missing", name)
    unknown = set(body) - set(required) - set(optional)
    need(not unknown, "unknown fields %s", sorted(unknown))


class Run:
    def __init__(self, run_id, experiment, name, start_time):
        self.id, self.experiment, self.name, self.start_time = run_id, experiment, name, start_time
        self.end_time, self.status, self.stage = None, "RUNNING", "active"
        self.params, self.tags = {}, {}
        self.metrics = collections.defaultdict(dict)  # key -> {(timestamp, step, value as text): value}
        self.repeats = 0  # metrics that were there already
        self.statuses = ["RUNNING"]

    def info(self):
        return {"run_id": self.id, "run_uuid": self.id, "experiment_id": self.experiment, "run_name": self.name,
                "user_id": "", "status": self.status, "start_time": self.start_time,
                **({"end_time": self.end_time} if self.end_time else {}), "lifecycle_stage": self.stage,
                "artifact_uri": "mlflow-artifacts:/%s/%s/artifacts" % (self.experiment, self.id)}

    def json(self):
        latest = [max(points, key=lambda p: (p[1], p[0], points[p])) + (key,) for key, points in self.metrics.items()]
        return {"info": self.info(),
                "data": {"params": [{"key": k, "value": v} for k, v in self.params.items()],
                         "tags": [{"key": k, "value": v} for k, v in self.tags.items()],
                         "metrics": [{"key": key, "value": spell(self.metrics[key][(t, s, v)]), "timestamp": t, "step": s}
                                     for t, s, v, key in latest]}, "inputs": {}}


def spell(value):
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class FakeMlflow(Fake):
    """prefix: the path under which the server lies ("/ml/flow"); auth: "user:password" or "Bearer token", else open;
    artifacts: the scheme of run directories that it proxies, or another one ("s3")."""

    def __init__(self, port=0, tls=None, prefix="", auth=None, artifacts=True):
        super().__init__(port, tls)
        self.prefix, self.artifacts = prefix, artifacts
        self.auth = auth and (auth if auth.startswith("Bearer ") else
                              "Basic " + base64.b64encode(auth.encode()).decode())
        self.url += prefix
        self.experiments = {}  # id -> {name, tags, stage}
        self.runs = {}  # id -> Run
        self.files = {}  # path -> bytes
        self.creates = 0  # runs/create that were done

    # what tests ask

    def runs_named(self, name):
        return [run for run in self.runs.values() if run.name == name and run.stage == "active"]

    def values(self, run):
        """{(key, step): [values]}: a reader's view."""
        seen = collections.defaultdict(list)
        for key, points in run.metrics.items():
            for (_, step, _), value in points.items():
                seen[key, step].append(value)
        return dict(seen)

    # requests

    def answer(self, request):
        if not request.path.startswith(self.prefix + "/"):
            return Reply(404, b"<!doctype html><title>404 Not Found</title>", content_type="text/html")
        path = request.path[len(self.prefix):]
        if path == "/health":
            return Reply(200, b"OK", content_type="text/plain")
        if path == "/version":
            return Reply(200, b"3.17.2", content_type="text/plain")
        if self.auth and request.headers.get("authorization") != self.auth:
            return Reply(401, b"You are not authenticated.", {"WWW-Authenticate": 'Basic realm="mlflow"'}, "text/html")
        try:
            parts = re.match(r"/(?:ajax-)?api/2\.0/mlflow-artifacts/artifacts/(.+)\Z", path)
            if parts:
                return self.artifact(request, urllib.parse.unquote(parts.group(1)))
            parts = re.match(r"/(?:ajax-)?api/2\.0/mlflow/([a-z/-]+)\Z", path)
            name = parts and request.method.lower() + "_" + re.sub("[/-]", "_", parts.group(1))
            if not name or not hasattr(self, name):
                return Reply(404, b"<!doctype html><title>404 Not Found</title>", content_type="text/html")
            body = request.query
            if request.method != "GET":
                need(len(request.body) <= BODY_MAX, "body of %d bytes", len(request.body))
                need("json" in request.headers.get("content-type", ""), "Content-Type is not JSON")
                try:
                    body = request.json()
                except ValueError as bad:
                    raise invalid("no JSON: %s" % bad) from bad
            return Reply(200, getattr(self, name)(body))
        except Refused as refused:
            return Reply(refused.code, {"error_code": refused.name, "message": str(refused)})

    def get_experiments_get_by_name(self, body):
        for number, experiment in self.experiments.items():
            if experiment["name"] == body.get("experiment_name"):
                return {"experiment": self.experiment_json(number)}
        raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "no experiment %r" % body.get("experiment_name"))

    def get_experiments_get(self, body):
        if body.get("experiment_id") not in self.experiments:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "no experiment with id %r" % body.get("experiment_id"))
        return {"experiment": self.experiment_json(body["experiment_id"])}

    def experiment_json(self, number):
        experiment = self.experiments[number]
        return {"experiment_id": number, "name": experiment["name"], "lifecycle_stage": experiment["stage"],
                "artifact_location": "mlflow-artifacts:/" + number, "tags": experiment["tags"]}

    def post_experiments_create(self, body):
        check_fields(body, ["name"], ["tags", "artifact_location"])
        need(isinstance(body["name"], str) and 0 < len(body["name"]) <= 500, "name")
        if any(e["name"] == body["name"] for e in self.experiments.values()):
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", "experiment %r exists" % body["name"])
        number = str(len(self.experiments) + 1)
        self.experiments[number] = {"name": body["name"], "tags": body.get("tags", []), "stage": "active"}
        return {"experiment_id": number}

    def post_runs_create(self, body):
        check_fields(body, ["experiment_id"], ["run_name", "start_time", "tags", "user_id"])
        need(body["experiment_id"] in self.experiments, "no experiment %r", body["experiment_id"])
        need(self.experiments[body["experiment_id"]]["stage"] == "active", "The experiment must be in the 'active' state.")
        need(whole(body.get("start_time", 0)) and body.get("start_time", 0) >= 0, "start_time")
        self.check_tags(body.get("tags", []))
        self.creates += 1
        run = Run("%032x" % (0xabc000 + self.creates), body["experiment_id"], body.get("run_name", "unnamed"),
                  body.get("start_time", 0))
        run.tags.update((t["key"], t["value"]) for t in body.get("tags", []))
        run.tags.setdefault("mlflow.runName", run.name)
        self.runs[run.id] = run
        answer = run.json()
        if not self.artifacts:
            answer["info"]["artifact_uri"] = "s3://bucket/%s" % run.id
        return {"run": answer}

    def post_runs_search(self, body):
        check_fields(body, ["experiment_ids"], ["filter", "max_results", "run_view_type", "order_by", "page_token"])
        need(all(isinstance(e, str) for e in body["experiment_ids"]), "experiment_ids")
        wanted = FILTER.match(body.get("filter", ""))
        need(wanted or not body.get("filter"), "filter %r", body.get("filter"))
        view = body.get("run_view_type", "ACTIVE_ONLY")
        found = [run.json() for run in self.runs.values() if run.experiment in body["experiment_ids"]
                 and (not wanted or run.tags.get(wanted.group(1)) == wanted.group(2))
                 and (view == "ALL" or (run.stage == "active") == (view == "ACTIVE_ONLY"))]
        return {"runs": found} if found else {}

    def get_runs_get(self, body):
        return {"run": self.run(body.get("run_id")).json()}

    def run(self, run_id, active=False):
        if run_id not in self.runs:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", "Run with id=%s not found" % run_id)
        need(not active or self.runs[run_id].stage == "active",
             "The run %s must be in the 'active' state. Current state is deleted.", run_id)
        return self.runs[run_id]

    def post_runs_update(self, body):
        check_fields(body, ["run_id"], ["run_uuid", "status", "end_time", "run_name"])
        run = self.run(body["run_id"], active=True)
        need(body.get("status", "RUNNING") in STATUS, "status %r", body.get("status"))
        need(whole(body.get("end_time", 0)) and body.get("end_time", 0) >= 0, "end_time")
        if "status" in body:
            run.status = body["status"]
            run.statuses.append(run.status)
        run.end_time = body.get("end_time", run.end_time)
        run.name = body.get("run_name", run.name)
        return {"run_info": run.info()}

    def post_runs_delete(self, body):
        self.run(body.get("run_id")).stage = "deleted"
        return {}

    def check_metric(self, m):
        check_fields(m, ["key", "value", "timestamp", "step"], ["run_id", "run_uuid"])
        check_key(m["key"], "metric")
        need(type(m["value"]) in (int, float) or m["value"] in NON_FINITE, "metric value %r", m["value"])
        need(whole(m["timestamp"]) and m["timestamp"] >= 0, "timestamp %r", m["timestamp"])
        need(whole(m["step"]), "step %r", m["step"])

    def check_tags(self, tags):
        for tag in tags:
            check_fields(tag, ["key", "value"])
            check_key(tag["key"], "tag")
            need(isinstance(tag["value"], str) and len(tag["value"]) <= 5000, "value of tag %r", tag["key"])

    def check_params(self, run, params):
        for param in params:
            check_fields(param, ["key", "value"])
            check_key(param["key"], "param")
            need(isinstance(param["value"], str) and len(param["value"]) <= 6000, "value of param %r", param["key"])
            need(run.params.get(param["key"], param["value"]) == param["value"], "Changing param values is not allowed: %r",
                 param["key"])

    def add_metric(self, run, m):
        value = NON_FINITE[m["value"]] if isinstance(m["value"], str) else float(m["value"])
        point = m["timestamp"], m["step"], repr(value)
        run.repeats += point in run.metrics[m["key"]]
        run.metrics[m["key"]][point] = value

    def post_runs_log_batch(self, body):
        check_fields(body, ["run_id"], ["metrics", "params", "tags"])
        run = self.run(body["run_id"], active=True)
        metrics, params, tags = (body.get(name, []) for name in ("metrics", "params", "tags"))
        need(len(metrics) <= 1000, "%d metrics", len(metrics))
        need(len(params) <= 100, "%d params", len(params))
        need(len(tags) <= 100, "%d tags", len(tags))
        need(len(metrics) + len(params) + len(tags) <= 1000, "more than 1000 things")
        need(len({m.get("key") for m in metrics}) <= 100, "more than 100 different metrics: older servers fail at a resend")
        for m in metrics:
            self.check_metric(m)
        self.check_params(run, params)
        self.check_tags(tags)
        for m in metrics:
            self.add_metric(run, m)
        run.params.update((p["key"], p["value"]) for p in params)
        self.set_tags(run, tags)
        return {}

    def set_tags(self, run, tags):
        run.tags.update((t["key"], t["value"]) for t in tags)
        run.name = run.tags.get("mlflow.runName", run.name)

    def post_runs_log_metric(self, body):
        run = self.run(body.get("run_id"), active=True)
        metric = {k: body[k] for k in ("key", "value", "timestamp", "step") if k in body}
        self.check_metric(metric)
        self.add_metric(run, metric)
        return {}

    def post_runs_log_parameter(self, body):
        run = self.run(body.get("run_id"), active=True)
        self.check_params(run, [{"key": body.get("key"), "value": body.get("value")}])
        run.params[body["key"]] = body["value"]
        return {}

    def post_runs_set_tag(self, body):
        run = self.run(body.get("run_id"), active=True)
        tag = {"key": body.get("key"), "value": body.get("value")}
        self.check_tags([tag])
        self.set_tags(run, [tag])
        return {}

    def get_metrics_get_history(self, body):
        run = self.run(body.get("run_id"))
        points = run.metrics.get(body.get("metric_key"), {})
        return {"metrics": [{"key": body["metric_key"], "value": spell(v), "timestamp": p[0], "step": p[1]}
                            for p, v in points.items()]}

    def artifact(self, request, path):
        need(os.path.normpath(path) == path and not path.startswith(("/", "..")), "path %r", path)
        if request.method == "PUT":
            self.files[path] = request.body
            return Reply(200, {})
        if request.method == "GET" and path in self.files:
            return Reply(200, self.files[path], content_type="application/octet-stream")
        raise Refused(404, "RESOURCE_DOES_NOT_EXIST", path)

    def get_artifacts_list(self, body):
        run = self.run(body.get("run_id"))
        root = "%s/%s/artifacts/" % (run.experiment, run.id)
        files = [{"path": p[len(root):], "is_dir": False, "file_size": len(data)}
                 for p, data in self.files.items() if p.startswith(root)]
        return {"root_uri": run.info()["artifact_uri"], "files": files}


if __name__ == "__main__":  # to look at it by hand
    with FakeMlflow() as fake:
        print(fake.url, flush=True)
        try:
            fake.closing.wait()
        except KeyboardInterrupt:
            print(json.dumps([run.json() for run in fake.runs.values()], indent=1))
