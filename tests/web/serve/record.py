"""record.py - a store with a study of any size, made of a small real one: its trials again with other parameters,
scores that follow from them, and the times of a night. The right content of the pages is therefore known, and the schema is the
program's.

record.py TRAWL STORE NAME TRIALS
"""

import json
import math
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
import tap  # noqa: E402

CONFIG = tap.TINY + """
[sweep]
method = sobol
""" + tap.space("""
train.learning_rate: distribution = log; min = 0.0001; max = 0.1
train.total_timesteps: distribution = log; min = 1024; max = 65536
train.gamma: distribution = logit; min = 0.8; max = 0.9999
train.ent_coef: distribution = log; min = 0.001; max = 0.2
train.clip_coef: min = 0.05; max = 0.4
policy.hidden_size: distribution = pow2; min = 4; max = 64
""")
REAL = 6
NIGHT_MS = 8 * 3600 * 1000
CURVES = 40  # trials that get learning curves
POINTS = 50  # of each


def logit(p):
    return math.log(p / (1.0 - p))


def parameters(rng):
    gamma = 1.0 / (1.0 + math.exp(-rng.uniform(logit(0.8), logit(0.9999))))
    return {"train.learning_rate": 10.0 ** rng.uniform(-4, -1), "train.total_timesteps": round(1024 * 64 ** rng.random()),
            "train.gamma": gamma, "train.ent_coef": 0.001 * 200 ** rng.random(), "train.clip_coef": rng.uniform(0.05, 0.4),
            "policy.hidden_size": 2 ** rng.randint(2, 6)}


def outcome(params, rng):
    """Score and seconds: longer and larger is better and more expensive, one learning rate is best."""
    steps, size = params["train.total_timesteps"], params["policy.hidden_size"]
    cost = steps / 1000.0 * (0.4 + size / 48.0) * rng.uniform(0.9, 1.1)
    reach = 1.0 - math.exp(-steps / 12000.0)
    score = reach * math.exp(-0.5 * (math.log10(params["train.learning_rate"]) + 2.2) ** 2) * (0.75 + 0.04 * math.log2(size))
    return score * (0.8 + 0.2 * min(1.0, logit(params["train.gamma"]) / 6.0)) + rng.gauss(0.0, 0.015), cost


def config_of(text, params):
    """The config of a real trial with other values."""
    lines, section = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        name = "%s.%s" % (section, line.split("=")[0].strip())
        lines.append("%s = %s" % (line.split("=")[0].strip(), repr(params[name])) if name in params and "=" in line else line)
    return "\n".join(lines) + "\n"


def insert(db, table, row):
    names = list(row)
    db.execute("INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(names), ", ".join("?" * len(names))), [row[n] for n in names])


def record(trawl, store, name, n_trials, seed=7, called=None):
    """called: the study's final name, which the command line would not accept."""
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as config:
        config.write(CONFIG)
        config.flush()
        subprocess.run([trawl, "sweep", config.name, "--store", str(store), "--name", name, "--trials", str(REAL), "-q"],
                       check=True, stdin=subprocess.DEVNULL, capture_output=True)
    rng, noise = random.Random(seed), random.Random(seed + 1)  # how many numbers a curve has does not change the trials
    db = sqlite3.connect(str(store), isolation_level=None)
    db.row_factory = sqlite3.Row
    study = db.execute("SELECT * FROM study WHERE name = ?", [name]).fetchone()
    base = dict(db.execute("SELECT * FROM trial WHERE study_id = ? AND state = 'done' ORDER BY number LIMIT 1", [study["id"]]).fetchone())
    last = {row["name_id"]: row for row in [dict(row) for row in db.execute("SELECT * FROM metric WHERE trial_id = ? ORDER BY env_steps", [base["id"]])]}
    top = db.execute("SELECT max(id) FROM trial").fetchone()[0]
    db.execute("BEGIN")
    for table, column in (("metric", "trial_id"), ("curve_sum", "trial_id"), ("checkpoint", "trial_id"), ("outbox", "trial_id"), ("trial", "id")):
        db.execute("DELETE FROM %s WHERE %s IN (SELECT id FROM trial WHERE study_id = ?)" % (table, column), [study["id"]])
    started = int(time.time() * 1000) - NIGHT_MS - 600000
    for number in range(n_trials):
        params = parameters(rng)
        score, cost = outcome(params, rng)
        at = started + NIGHT_MS * number // n_trials
        row = dict(base, checksum=None, id=top + 1 + number, number=number, params=json.dumps(params), config=config_of(base["config"], params), score=score,
                   perf=score, cost_s=cost, device_s=cost, env_steps=params["train.total_timesteps"], seed=rng.randrange(1 << 31),
                   origin="default" if number == 0 else "sobol" if number < 16 else "ehvi", device="cuda:%d" % (number % 4), created_ms=at, started_ms=at,
                   finished_ms=at + NIGHT_MS * 4 // n_trials - 200)
        if "slot" in row:
            row["slot"] = row["device"]
        if number % 23 == 7:
            row.update(state="failed", score=None, perf=None, reason="policy.encoder.weight is NaN after update 12 (step 98304)" if number % 2 else "the worker died of signal 9")
        elif number % 17 == 11:
            row.update(state="stopped", cost_s=cost * 0.3, reason="unlikely to reach the front")
        if called and number % 5 == 1:  # texts that a worker or a host may have made up
            row.update(device="\"><svg onload=alert(2)>", reason="</td><script>alert(3)</script>")
        insert(db, "trial", row)
        if number >= n_trials - CURVES:
            for point in last.values():
                for k in range(1, POINTS + 1):
                    reach = (1.0 - math.exp(-5.0 * k / POINTS)) * (1.0 + 0.05 * noise.gauss(0.0, 1.0))
                    insert(db, "metric", dict(point, trial_id=row["id"], env_steps=k * params["train.total_timesteps"] // POINTS, wall_s=cost * k / POINTS,
                                              value=None if point["value"] is None else point["value"] * reach))
    db.execute("UPDATE study SET checksum = NULL, trials_max = ?, name = ?, end_text = ? WHERE id = ?",
               [n_trials, called or name, "the study has its %d trials" % n_trials, study["id"]])
    db.execute("COMMIT")
    db.close()


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
