"""fake_wandb.py - W&B's server as its clients see it, strict where a client could do harm.

Runs are upserted by name; a line of a run's history has a place by its index: a resend overwrites, a gap is an error (400), and
what is already complete may be gone on with. Runs read back as `server.run(project, name)` with the lines in `history`,
`events`, `summary`, `config`, `files`, `state`, `exitcode`. `server.delete(name)` makes a run id unusable for ever (409), as the
real one does; `server.stop_run(name)` presses Stop on the page.
"""
import base64
import json
import pathlib
import re
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from faults import Fake, Reply  # noqa: E402

KEY = "0123456789abcdef0123456789abcdef01234567"
LINE_MAX = 10383360
FIELDS = {"complete", "exitcode", "files", "uploaded", "preempting", "dropped"}


def lines_json(text):
    """The text of a line: NaN, Infinity and -Infinity may stand bare in it."""
    return json.loads(text)


class Run:
    def __init__(self, name, project, entity):
        self.name, self.project, self.entity = name, project, entity
        self.id = base64.b64encode(("Run:v1:%s:%s:%s" % (name, project, entity)).encode()).decode()
        self.config, self.summary = {}, {}
        self.history, self.events, self.output = [], [], []
        self.files, self.uploaded = {}, []
        self.state, self.exitcode = "running", None
        self.group = self.display_name = self.job_type = self.notes = None
        self.tags = []
        self.beats = self.upserts = self.overwritten = 0
        self.stopped = self.preempting = False

    def rows(self):
        return [lines_json(line) for line in self.history]


class FakeWandb(Fake):
    def __init__(self, port=0, tls=None, key=KEY, entity="tester"):
        super().__init__(port, tls)
        self.key, self.entity = key, entity
        self.runs, self.deleted = {}, set()
        self.logins = 0

    # ---- for tests ----

    def run(self, name):
        with self.lock:
            return self.runs[name]

    def has_points(self):
        """Has any run been told a point of its curve?"""
        with self.lock:
            return any(run.history for run in self.runs.values())

    def delete(self, name):
        with self.lock:
            self.runs.pop(name)
            self.deleted.add(name)

    def stop_run(self, name):
        with self.lock:
            self.runs[name].stopped = True

    # ---- requests ----

    def answer(self, request):
        if request.path.startswith("/storage/"):
            return self.storage(request)
        if not self.authorised(request):
            return Reply(401, {"errors": [{"message": "permission denied", "extensions": {"code": "PERMISSION_ERROR"}}]})
        if request.path == "/graphql" and request.method == "POST":
            return self.graphql(request.json())
        match = re.fullmatch(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream", request.path)
        if match and request.method == "POST":
            return self.file_stream(*(urllib.parse.unquote(part) for part in match.groups()), request.json())
        return Reply(404, {"error": "no such path"})

    def authorised(self, request):
        want = "Basic " + base64.b64encode(("api:" + self.key).encode()).decode()
        return request.headers.get("authorization") == want

    def graphql(self, body):
        query, variables = body["query"], body.get("variables") or {}
        for words, function in ((r"\bupsertBucket\b", self.upsert), (r"\bcreateRunFiles\b", self.create_files),
                                (r"\bserverInfo\b", self.server_info), (r"\bviewer\b", self.viewer),
                                (r"\bbucket\s*\(", self.resume), (r"__type|__schema", self.introspect)):
            if re.search(words, query):
                return function(variables)
        return self.unknown(query)

    def unknown(self, query):
        return Reply(400, {"errors": [{"message": "unknown operation: " + query[:200]}]})

    def introspect(self, variables):
        return Reply(200, {"data": {"__type": None, "QueryType": {"fields": []}, "MutationType": {"fields": []},
                                    "ServerInfoType": {"fields": []}}})

    def server_info(self, variables):
        return Reply(200, {"data": {"serverInfo": {"features": [], "cliVersionInfo": {}, "latestLocalVersionInfo": None},
                                    "viewer": self.person()}})

    def person(self):
        return {"id": "VXNlcjox", "entity": self.entity, "username": self.entity, "email": "", "flags": "{}",
                "teams": {"edges": []}}

    def viewer(self, variables):
        self.logins += 1
        return Reply(200, {"data": {"viewer": self.person()}})

    def resume(self, variables):
        run = self.runs.get(variables.get("name"))
        if run is None:
            return Reply(200, {"data": {"model": {"bucket": None}}})
        bucket = self.bucket(run)
        bucket.update(summaryMetrics=json.dumps(run.summary), logLineCount=len(run.output),
                      eventsLineCount=len(run.events), historyTail=json.dumps(run.history[-1:]),
                      eventsTail=json.dumps(run.events[-1:]), config=json.dumps(run.config), tags=run.tags,
                      notes=run.notes, wandbConfig=json.dumps({"t": 1}))
        return Reply(200, {"data": {"model": {"id": "1", "name": run.project, "bucket": bucket}}})

    def bucket(self, run):
        return {"id": run.id, "name": run.name, "displayName": run.display_name or run.name, "sweepName": None,
                "description": None, "config": json.dumps(run.config), "historyLineCount": len(run.history),
                "project": {"id": "UHJvamVjdDox", "name": run.project, "entity": {"id": "1", "name": run.entity}}}

    def upsert(self, variables):
        name, project = variables.get("name"), variables.get("project") or "uncategorized"
        if name in self.deleted:
            return Reply(409, {"errors": [{"message": "run %s was previously created and deleted" % name}]})
        if not name or re.search(r"[:;,#?/']", name) or name != name.strip() or len(name) > 128:
            return Reply(400, {"errors": [{"message": "invalid run name"}]})
        if len(project) > 128 or re.search(r"[/\\#?%:]", project):
            return Reply(400, {"errors": [{"message": "invalid project name"}]})
        tags = variables.get("tags")
        if tags and any(not 1 <= len(tag) <= 64 for tag in tags):
            return Reply(400, {"errors": [{"message": "a tag has 1 to 64 characters"}]})
        if tags and len(set(tags)) < len(tags):
            return Reply(400, {"errors": [{"message": "a tag twice: %s" % tags}]})
        inserted = name not in self.runs
        if inserted:
            self.runs[name] = Run(name, project, variables.get("entity") or self.entity)
        run = self.runs[name]
        run.upserts += 1
        if variables.get("config") is not None:
            config = lines_json(variables["config"])
            if not all(isinstance(entry, dict) and "value" in entry for entry in config.values()):
                return Reply(400, {"errors": [{"message": "every entry of a config has a value"}]})
            run.config = config
        for key, field in (("groupName", "group"), ("displayName", "display_name"), ("jobType", "job_type"),
                           ("notes", "notes"), ("tags", "tags"), ("state", "state")):
            if variables.get(key) is not None:
                setattr(run, field, variables[key])
        return Reply(200, {"data": {"upsertBucket": {"bucket": self.bucket(run), "inserted": inserted}}})

    def file_stream(self, entity, project, name, body):
        run = self.runs.get(name)
        if run is None or run.project != project or run.entity != entity:
            return Reply(404, {"error": "run not found"})
        if set(body) - FIELDS:
            return Reply(400, {"error": "unknown fields: %s" % (set(body) - FIELDS)})
        for file, chunk in (body.get("files") or {}).items():
            problem = self.write_lines(run, file, chunk["offset"], chunk["content"])
            if problem:
                return Reply(400, {"error": problem})
        run.uploaded += body.get("uploaded") or []
        run.beats += not body
        run.preempting = run.preempting or bool(body.get("preempting"))
        if body.get("complete"):
            run.exitcode = body["exitcode"]
            run.state = "finished" if run.exitcode == 0 else "failed"
        return Reply(200, {"stopped": True} if run.stopped else {})

    def write_lines(self, run, file, offset, content):
        """None, or what is wrong: lines have places, and there may be no hole before them."""
        if any(len(line.encode()) > LINE_MAX for line in content):
            return "a line is too long"
        if file == "wandb-summary.json":
            run.summary = lines_json(content[-1])
            empty = [name for name, value in run.summary.items() if value is None]
            return "null in the summary: %s" % empty if empty else None
        to = {"wandb-history.jsonl": run.history, "wandb-events.jsonl": run.events, "output.log": run.output}.get(file)
        if to is None:
            return "unknown file " + file
        if offset > len(to):
            return "%s: offset %d leaves a hole behind line %d" % (file, offset, len(to))
        for line in content if file != "output.log" else []:
            row = lines_json(line)
            if not isinstance(row, dict):
                return "a line is not an object"
            for name, value in row.items():  # as W&B's client sends its media
                if isinstance(value, dict) and value.get("_type", "").endswith("-file") and \
                        not re.fullmatch("[0-9a-f]{64}", value.get("sha256", "")):
                    return "%s has no sha256" % name
                if value is None:
                    return "%s is null" % name
        run.overwritten += min(len(content), len(to) - offset)
        to[offset:offset + len(content)] = content
        steps = [lines_json(line).get("_step") for line in to] if to is run.history else []
        if len(set(steps)) < len(steps):
            return "two lines of one step: %s" % steps[-5:]
        return None

    def create_files(self, variables):
        run = self.runs.get(variables.get("run") or variables.get("name"))
        if run is None:
            return Reply(404, {"errors": [{"message": "run not found"}]})
        files = [{"name": file, "uploadUrl": "%s/storage/%s/%s?signature=secret" % (self.url, run.name,
                                                                                  urllib.parse.quote(file))}
                 for file in variables["files"]]
        return Reply(200, {"data": {"createRunFiles": {"runID": run.id, "uploadHeaders": ["X-Storage: 1"],
                                                       "files": files}}})

    def storage(self, request):
        if "authorization" in request.headers:
            return Reply(400, {"error": "storage wants no login"})
        if request.method != "PUT" or request.headers.get("x-storage") != "1" or not request.query.get("signature"):
            return Reply(403, {"error": "bad signature"})
        _, _, name, file = request.path.split("/", 3)
        self.runs[name].files[urllib.parse.unquote(file)] = request.body
        return Reply(200, {})


if __name__ == "__main__":
    import time
    with FakeWandb(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as fake:
        print(fake.url, flush=True)
        while True:
            time.sleep(1)
