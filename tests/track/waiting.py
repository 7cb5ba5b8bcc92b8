"""waiting.py - a store whose rows wait for trackers, made by a sweep offline. Every tracker must have the outbox's rows in
the end, each in its own form: `Wandb`, `Mlflow`, `Trackio` and `Webhook` compute that form and compare it with their fakes.
"""
import contextlib
import json
import math
import sqlite3

import tap
from tap import equal, run, write

import servers
from fake_mlflow import FakeMlflow
from fake_trackio import FakeTrackio
from fake_wandb import KEY, FakeWandb
from fake_webhook import FakeWebhook

SWEEP = tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 8192\nlog_interval_s = 0")
RESULT = {"result/" + name: name for name in ("score", "perf", "cost_s", "device_s", "env_steps")}
FRONT = {"study/" + name: name for name in ("trials", "hypervolume", "cost_s", "best_score")}


def number(value):
    """A number of a payload, where numbers that are not finite are texts."""
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value


def numbers(values):
    return {k: float(number(v)) for k, v in values.items() if v is not None}


class Row:
    def __init__(self, key, id_, ms, payload):
        self.run, self.id, self.ms, self.json = key, id_, ms, payload
        self.type = payload["type"]

    def values(self):
        """{name: value} and the step, as every tracker names them."""
        j = self.json
        if self.type in ("metrics", "system"):
            return numbers(j["values"]), j["env_steps"]
        if self.type == "result":
            return numbers({sent: j.get(name) for sent, name in RESULT.items()}), j["env_steps"]
        if self.type == "front":
            return numbers({sent: j.get(name) for sent, name in FRONT.items()}), j["trials"]
        return {}, 0


class Waiting:
    def __init__(self, folder, *kinds, trials=3):
        self.folder, self.store = folder, folder / "s.db"
        self.kinds = kinds
        config = write(folder, "sweep.ini", SWEEP)
        run("sweep", config, "--store", self.store, "--name", "first", "--trials", trials, "--track",
            ",".join(kind.name for kind in kinds), "--track.offline", "true", "--track.interval_s", "0.1",
            "--track.requests_per_minute", "100000", env=servers.clean_env(folder))
        if trials > 1:
            self.spoil()
        self.read()

    def sql(self, *statement):
        db = sqlite3.connect(self.store)
        try:
            rows = db.execute(*statement).fetchall()
            db.commit()
            return rows
        finally:
            db.close()

    @classmethod
    def of(cls, folder, *kinds):
        """A store that the test fills itself: read() it then."""
        waiting = cls.__new__(cls)
        waiting.folder, waiting.store, waiting.kinds = folder, folder / "s.db", kinds
        return waiting

    def spoil(self):
        """Some values become numbers that are not finite, or that need every bit."""
        ids = self.sql("SELECT id FROM outbox WHERE json_extract(payload, '$.type') = 'metrics' ORDER BY id")
        assert len(ids) > 60, "too few rows for the test"
        for at, value in enumerate(("nan", "inf", "-inf", 0.1 + 0.2, 5e-324, 1.7976931348623157e308)):
            for i in (at + 2, at + 30):
                self.sql("UPDATE outbox SET checksum = NULL, payload = json_set(payload, '$.values.\"train/lr\"', json(?)) WHERE id = ?",
                         (json.dumps(value), ids[i][0]))

    def read(self):
        """Reads the waiting rows."""
        self.key = self.sql("SELECT key FROM tracker")[0][0]
        self.rows = [Row("%s-%s" % (self.key, "study" if number_ is None else number_), id_, ms, json.loads(payload))
                     for id_, number_, ms, payload in self.sql(
                         "SELECT o.id, t.number, o.created_ms, o.payload FROM outbox o LEFT JOIN trial t "
                         "ON t.id = o.trial_id ORDER BY o.id")]
        self.part_attempts()

    def part_attempts(self):
        """An attempt from zero has its own run, and the run of the attempt before gets a result."""
        self.over, names, last, rows = set(), {}, {}, []
        for row in self.rows:
            plain = row.run
            if row.json.get("anew"):
                before = names.get(plain, plain)
                self.over.add(before)
                rows.append(Row(before, row.id, row.ms, {
                    "type": "result", "state": "lost", "env_steps": last.get(plain, 0),
                    "reason": "its program ended; the trial began again from zero, in a run of its own"}))
                names[plain] = "%s-a%d" % (plain, row.json["attempt"])
            if row.type == "metrics":
                last[plain] = row.json["env_steps"]
            row.run = names.get(plain, plain)
            rows.append(row)
        self.rows = rows

    def left(self):
        return self.sql("SELECT count(*) FROM outbox")[0][0]

    def env(self, fakes, more):
        env = {}
        for kind, fake in zip(self.kinds, fakes):
            env.update(kind.env(fake))
        env.update(more)
        return servers.clean_env(self.folder, **{k: v for k, v in env.items() if v is not None})

    def sync(self, *fakes, code=0, timeout="30s", **more):
        return run("sync", "--store", self.store, "--timeout", timeout, code=code, env=self.env(fakes, more))[1]

    def check(self, *fakes):
        """Everything is there exactly once and nothing else."""
        for kind, fake in zip(self.kinds, fakes):
            equal(fake.broken, [])
            kind.check(self, fake)
        equal(self.left(), 0)


def same_sets(got, want):
    """Compares two dicts of sets or values, with a short message."""
    equal(sorted(map(str, got)), sorted(map(str, want)))
    for key, value in want.items():
        if isinstance(value, set):
            assert got[key] == value, "%s: missing %s, too many %s" % (
                key, sorted(value - got[key])[:5], sorted(got[key] - value)[:5])
        else:
            assert got[key] == value, "%s: %r, wanted %r" % (key, got[key], value)


class Wandb:
    name = "wandb"
    match = "-[0-9]+/file_stream"  # the requests with its numbers

    @staticmethod
    def fake(**more):
        return FakeWandb(**more)

    @staticmethod
    def env(fake):
        return {"WANDB_BASE_URL": fake.url, "WANDB_API_KEY": KEY}

    @staticmethod
    def curves(waiting):
        """{run: [(step, {name: value})]} of all trials; values as repr, which is exact and equal for NaN."""
        curves = {row.run: [] for row in waiting.rows if not row.run.endswith("-study")}
        for row in waiting.rows:
            if row.type == "metrics":
                values, step = row.values()
                curves[row.run].append((step, {name: repr(value) for name, value in values.items()}))
        return curves

    @staticmethod
    def check_run(run_, points, end=("finished", 0)):
        equal([(row["_step"], {name: repr(float(v)) for name, v in row.items() if not name.startswith("_")})
               for row in run_.rows()], points)
        equal((run_.state, run_.exitcode), end)

    @classmethod
    def check(cls, waiting, fake):
        curves = cls.curves(waiting)
        equal(set(fake.runs), {waiting.key + "-study", *curves})
        for key, points in curves.items():
            cls.check_run(fake.run(key), points, ("failed", 1) if key in waiting.over else ("finished", 0))

    @staticmethod
    def repeats(fake):
        return sum(run_.overwritten for run_ in fake.runs.values())


class Mlflow:
    name = "mlflow"
    match = "log-batch"  # the requests with its numbers

    @staticmethod
    def fake(**more):
        return FakeMlflow(auth="ann:pass-word-of-ann", prefix="/ml/flow", **more)

    @staticmethod
    def env(fake):
        return {"MLFLOW_TRACKING_URI": fake.url, "MLFLOW_TRACKING_USERNAME": "ann",
                "MLFLOW_TRACKING_PASSWORD": "pass-word-of-ann"}

    @staticmethod
    def check(waiting, fake):
        want = {}
        for row in waiting.rows:
            values, step = row.values()
            points = want.setdefault(row.run, set())
            points |= {(name, row.ms, step, repr(value)) for name, value in values.items()}
        same_sets({run_.tags["trawl.run"]: {(key, *point) for key, points in run_.metrics.items() for point in points}
                   for run_ in fake.runs.values()}, want)
        equal({(run_.tags["trawl.run"], run_.status) for run_ in fake.runs.values()},
              {(key, "FAILED" if key in waiting.over else "FINISHED") for key in want})
        equal(fake.creates, len(want))

    @staticmethod
    def repeats(fake):
        return sum(run_.repeats for run_ in fake.runs.values())


class Trackio:
    name = "trackio"
    match = "bulk_log"

    @staticmethod
    def fake(**more):
        return FakeTrackio(prefix="/track/io", **more)

    @staticmethod
    def env(fake):
        return {"TRACKIO_SERVER_URL": fake.url + "?write_token=" + fake.token}

    @staticmethod
    def check(waiting, fake):
        sent = [row for row in waiting.rows if row.type != "file"]
        equal({log_id for _, log_id in fake.rows}, {"%s:%d" % (row.run, row.id) for row in sent})
        equal({project for project, _ in fake.rows}, {"trawl"})
        for row in sent:
            got = fake.rows["trawl", "%s:%d" % (row.run, row.id)]
            values, step = row.values()
            equal(got["run_id"], row.run)
            if values:
                equal(got["step"], step)
                equal({k: repr(float(got["metrics"].get(k, "nothing"))) for k in values},
                      {k: repr(v) for k, v in values.items()})
        equal(set(fake.configs), {("trawl", row.run) for row in sent})

    @staticmethod
    def repeats(fake):
        return fake.repeats


class Webhook:
    name = "webhook"
    match = "hook"
    secret = "secret-of-the-webhook"

    @classmethod
    def fake(cls, **more):
        return FakeWebhook(secret=cls.secret, path="/hooks/path-that-is-a-secret", **more)

    @classmethod
    def env(cls, fake):
        return {"TRAWL_WEBHOOK_URL": fake.url, "TRAWL_WEBHOOK_SECRET": cls.secret}

    @staticmethod
    def check(waiting, fake):
        def spelt(value):
            if isinstance(value, dict):
                return {k: spelt(v) for k, v in value.items()}
            if isinstance(value, list):
                return [spelt(v) for v in value]
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(value, value) \
                if isinstance(value, str) else value
        newest = {row.json["name"]: row.id for row in waiting.rows if row.type == "file"}
        want = {(row.run, row.id): {"id": row.id, "ms": row.ms, **spelt(row.json)} for row in waiting.rows
                if row.type != "file" or newest[row.json["name"]] == row.id}
        # A post has only the newest file of a name; earlier ones may be there as well.
        got = {at: event for at, event in fake.events.items() if event["type"] != "file" or at in want}
        same_sets(got, want)
        for run_ in {row.run for row in waiting.rows}:
            ids = [id_ for key, id_ in fake.events if key == run_]
            equal(ids, sorted(ids))

    @staticmethod
    def repeats(fake):
        return fake.repeats


KINDS = (Mlflow, Trackio, Webhook, Wandb)


@contextlib.contextmanager
def fakes_of(*kinds, **more):
    """A running fake of each kind."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(kind.fake(**more)) for kind in kinds]
