"""Learning curves as TensorBoard's event files, of one training and of a study, read by a reader of this file's own.

The case with TensorBoard needs its package: of `tools/test --servers`, or of the Python that TRAWL_TENSORBOARD names."""
import csv
import json
import pathlib
import struct
import subprocess

import tap
from tap import TINY_SWEEP, equal, fails, run, show, write

REPORTS = tap.TINY + "log_interval_s = 0\nanneal_lr = false\n"
ASK_TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for folder in sys.argv[1:]:
    events = EventAccumulator(folder, size_guidance={'scalars': 0})
    events.Reload()
    print(json.dumps({tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()['scalars']}))
"""


def crc32c(data):
    """Castagnoli's, bit by bit; of "123456789" it is e3069283 (RFC 3720)."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def checked(data, checksum):
    crc = crc32c(data)
    equal(checksum, ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)
    return data


def records(data):
    """The data of each record, whose checksums must be right."""
    while data:
        length, = struct.unpack("<Q", checked(data[:8], struct.unpack("<I", data[8:12])[0]))
        yield checked(data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])[0])
        data = data[16 + length:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message of protocol buffers."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if key & 7 == 2:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def read_events(folder):
    """{tag: [(step, value, seconds)]} of a folder's files in the order of their names."""
    curves, files = {}, sorted(pathlib.Path(folder).glob("events.out.tfevents.*"))
    assert files, folder
    for path in files:
        first, *rest = [list(fields(record)) for record in records(path.read_bytes())]
        equal(dict(first)[3], b"brain.Event:2")
        for event in map(dict, rest):
            for number, value in fields(event[5]):
                equal(number, 1)
                of_value = dict(fields(value))
                curves.setdefault(of_value[1].decode(), []).append(
                    (event[2], struct.unpack("<f", of_value[2])[0], struct.unpack("<d", event[1])[0]))
    return curves


def narrow(value):
    """As a float of 32 bits."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def stored_curves(store, study):
    """{trial: {metric: [(step, value)]}} as the store has them, NaN left out."""
    curves = {}
    for trial, name, step, value in tap.rows(
            store, "SELECT t.number, n.name, m.env_steps, m.value FROM metric AS m JOIN metric_name AS n ON n.id = m.name_id "
            "JOIN trial AS t ON t.id = m.trial_id JOIN study AS s ON s.id = t.study_id WHERE s.name = ? AND m.value IS NOT NULL "
            "ORDER BY t.number, n.name, m.env_steps", study):
        curves.setdefault(trial, {}).setdefault(name, []).append((step, narrow(value)))
    return curves


def train(folder):
    """A training that is resumed: two event files."""
    config, logs = write(folder, "t.ini", REPORTS), folder / "logs"
    run("train", config, "-q", "--log-dir", logs, "-o", folder / "t.ckpt", "--train.total_timesteps", 2048)
    run("train", "--resume", folder / "t.ckpt", "-q", "--log-dir", logs, "--train.total_timesteps", 4096)
    return logs


def test_the_reader_of_this_test_knows_the_checksum(_):
    equal(crc32c(b"123456789"), 0xe3069283)


def test_a_training_writes_what_its_table_has(folder):
    logs = train(folder)
    equal(len(list(logs.glob("events.out.tfevents.*"))), 2)
    curves = read_events(logs)
    rows = list(csv.DictReader((logs / "metrics.csv").read_text().splitlines()))
    assert len(rows) > 3 and "train/policy_loss" in curves, (rows, list(curves))
    want = {name: [(int(float(row["env_steps"])), narrow(float(row[name]))) for row in rows if row[name]] for name in rows[0]}
    equal({name: [point[:2] for point in points] for name, points in curves.items()},
          {name: points for name, points in want.items() if points})
    seconds = [point[2] for point in curves["env_steps"]]
    equal(seconds, sorted(seconds))


def sweep(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "sweep.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 3, "--seed", 3, "-q",
        "--train.log_interval_s", 0)
    run("try", "a", "--train.gamma", 0.9, "--store", store)  # has no curve
    return store


def test_a_study_has_a_run_for_each_trial(folder):
    store, out = sweep(folder), folder / "curves"
    _, err = run("export", "a", "--store", store, "--format", "curves", "-o", out)
    assert "the curves of 3 trials of a" in err, err
    want = stored_curves(store, "a")
    equal(sorted(p.name for p in out.iterdir()), ["trial-%d" % n for n in sorted(want)])
    for number, curves in want.items():
        got = read_events(out / ("trial-%d" % number))
        equal({name: [p[:2] for p in points] for name, points in got.items()}, curves)
        began = show(store, "a")["trials"][number]["started_ms"] / 1000
        for name, points in got.items():
            assert all(began <= p[2] < began + 60 for p in points), (name, began, points)
        rows = list(csv.DictReader((out / ("trial-%d" % number) / "metrics.csv").read_text().splitlines()))
        lines = [json.loads(line) for line in (out / ("trial-%d" % number) / "metrics.jsonl").read_text().splitlines()]
        equal([{k: float(v) for k, v in row.items() if v} for row in rows], lines)
        steps = [line["env_steps"] for line in lines]
        equal(steps, sorted(set(steps)))
        for name, points in curves.items():
            equal([(line["env_steps"], narrow(line[name])) for line in lines if name in line], points)
    assert len(want[0]["perf"]) > 1, want[0]


def test_what_cannot_be_written_is_refused(folder):
    store = sweep(folder)
    fails("export", "a", "--store", store, "--format", "curves", code=2, says="name it with -o")
    fails("export", "a", "--store", store, "--format", "curves", "--pick", "best", "-o", folder / "x", code=2,
          says="--pick is for one trial")
    fails("export", "a", "--store", store, "--format", "curves", "-o", folder, code=1, says="already exists")
    fails("export", "a", "--store", store, "--format", "curves", "-o", folder / "no" / "folder", code=1, says="no/folder")


def test_tensorboard_itself_reads_the_same_curves(folder):
    python = tap.package("tensorboard", "TRAWL_TENSORBOARD")
    logs, store, out = train(folder), sweep(folder), folder / "curves"
    run("export", "a", "--store", store, "--format", "curves", "-o", out)
    want = stored_curves(store, "a")
    runs = [logs, *(out / ("trial-%d" % n) for n in sorted(want))]
    done = subprocess.run([python, "-c", ASK_TENSORBOARD, *map(str, runs)], capture_output=True, text=True,
                          timeout=tap.PATIENCE_S)
    assert done.returncode == 0, done.stderr
    seen = [{tag: [tuple(p) for p in points] for tag, points in json.loads(line).items()} for line in done.stdout.splitlines()]
    equal(seen[0], {tag: [p[:2] for p in points] for tag, points in read_events(logs).items()})
    equal(seen[1:], [want[n] for n in sorted(want)])
