"""fake_trackio.py - a Trackio server in memory, stricter than the real one.

The real server takes null for a number, fractions for steps and any log id; here these are refused. A log id that was seen
in its project is passed over, whatever run it came with, as there.
"""
import math
import urllib.parse

from faults import Fake, Reply

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Refused(Exception):
    pass


def need(condition, text, *args):
    if not condition:
        raise Refused(text % args)


class FakeTrackio(Fake):
    """prefix: the path under which it lies; token: of writers; paused: answers writes with 503."""

    def __init__(self, port=0, tls=None, prefix="", token="token-of-the-fake"):
        super().__init__(port, tls)
        self.prefix, self.token, self.paused = prefix, token, False
        self.url += prefix
        self.rows = {}  # (project, log_id) -> {run, run_id, step, metrics}
        self.configs = {}  # (project, run_id) -> dict
        self.alerts = {}  # (project, alert_id) -> dict
        self.repeats = 0  # rows that were there already

    def answer(self, request):
        if not request.path.startswith(self.prefix + "/"):
            return Reply(404, b"Not Found", content_type="text/plain")
        path = request.path[len(self.prefix):]
        if path == "/version":
            return Reply(200, {"version": "0.43.0", "api_version": 1, "writes_paused": self.paused,
                               "api_transport": "http", "mcp_enabled": False, "mcp_path": None})
        name = path[len("/api/"):] if path.startswith("/api/") else ""
        call = getattr(self, "call_" + name, None)
        if request.method != "POST" or not call:
            return Reply(404, {"error": "Unknown API: " + name})
        allowed = self.allowed(request)
        if name.startswith("bulk_") and self.paused:
            return Reply(503, {"error": "Writes are paused"})
        try:
            need(allowed or not name.startswith("bulk_"), "A write_token is required to log metrics")
            try:
                body = request.json()
            except ValueError as bad:
                raise Refused("no JSON: %s" % bad) from bad
            need(isinstance(body, dict) and isinstance(body.get("kwargs"), dict) and not body.get("args"), "args, kwargs")
            return Reply(200, {"data": call(allowed, **body["kwargs"])})
        except (Refused, TypeError) as refused:
            return Reply(400, {"error": str(refused)})

    def allowed(self, request):
        query = urllib.parse.parse_qs(request.target.partition("?")[2])
        return request.headers.get("x-trackio-write-token", query.get("write_token", [None])[0]) == self.token

    def call_get_run_mutation_status(self, allowed):
        return {"spaces": False, "allowed": allowed, "auth": "local" if allowed else "none"}

    def call_bulk_log(self, allowed, logs, hf_token):
        need(logs, "no logs")
        for row in logs:
            unknown = set(row) - {"project", "run", "run_id", "metrics", "step", "config", "log_id", "timestamp"}
            need(not unknown, "unknown fields %s", sorted(unknown))
            for name in ("project", "run", "run_id", "log_id"):
                need(isinstance(row.get(name), str) and row[name], "%s is %r", name, row.get(name))
            need(len(row["project"]) < 200 and "/" not in row["project"], "project %r", row["project"])
            need(row.get("step") is None or type(row["step"]) is int, "step %r", row.get("step"))
            need(isinstance(row.get("metrics"), dict), "metrics")
            for key, value in row["metrics"].items():
                need(value is not None and not (isinstance(value, float) and not math.isfinite(value)), "%s is null", key)
        for row in logs:
            at = row["project"], row["log_id"]
            if at in self.rows:
                self.repeats += 1
            else:
                self.rows[at] = {"run": row["run"], "run_id": row["run_id"], "step": row.get("step"),
                                 "metrics": {k: NON_FINITE.get(v, v) if isinstance(v, str) else v
                                             for k, v in row["metrics"].items()}}
            if row.get("config"):
                self.configs[row["project"], row["run_id"]] = row["config"]

    def call_bulk_log_system(self, allowed, logs, hf_token):
        need(logs, "no logs")

    def call_bulk_alert(self, allowed, alerts, hf_token):
        for alert in alerts:
            for name in ("project", "run", "run_id", "title", "level", "timestamp", "alert_id"):
                need(isinstance(alert.get(name), str), "%s is %r", name, alert.get(name))
            need(alert["level"] in ("info", "warn", "error"), "level %r", alert["level"])
            self.repeats += (alert["project"], alert["alert_id"]) in self.alerts
            self.alerts[alert["project"], alert["alert_id"]] = alert

    def call_get_runs_for_project(self, allowed, project):
        found = {}
        for (of, _), row in self.rows.items():
            if of == project:
                found[row["run_id"]] = {"id": row["run_id"], "name": row["run"], "created_at": "2026-01-01T00:00:00+00:00"}
        return list(found.values())
