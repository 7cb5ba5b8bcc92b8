#!/usr/bin/env python3
"""readers.py - what readers of `trawl serve` cost a sweep beside them: steps a second of its trials, alone and with the server and
readers, in turn; and the processor time of the server. A reader does what an open page of the study does: it listens to the
events, and reads the study and its changed trials when one comes.

usage: bench/serve/readers.py TRAWL [READERS [ROUNDS [TRIALS]]]
"""

import argparse
import asyncio
import os
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402

CONFIG = """
[env]
name = cartpole
[policy]
hidden_size = 64
[train]
total_agents = 128
horizon = 32
minibatch_size = 1024
total_timesteps = 400k
threads = 1
device = cpu
[sweep]
method = sobol
[sweep.train.learning_rate]
min = 0.001
max = 0.02
"""
FIELDS = "number,state,score,cost,cost_s,env_steps,on_front,origin,device,reason,seed,started_ms,finished_ms,live_score,live_s,params"


async def get(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(("GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n" % path).encode())
    await reader.read(-1)
    writer.close()


async def read_pages(port, counts):
    """One reader; ends when it is cancelled."""
    for path in ("", "/trials?limit=20000&fields=" + FIELDS, "/front", "/insight", "/model/front", "/pick?rule=knee"):
        await get(port, "/api/v1/studies/s" + path)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(b"GET /api/v1/events?study=s HTTP/1.1\r\nHost: localhost\r\n\r\n")
    version = 0
    try:
        while line := await reader.readline():
            if line.startswith(b"data:") and b'"version"' in line:
                counts["events"] += 1
                version = int(re.search(rb'"version": ?(\d+)', line).group(1))
            elif line == b"\n" and version:
                await get(port, "/api/v1/studies/s")
                await get(port, "/api/v1/studies/s/trials?limit=20000&since=%d&fields=%s" % (version - 1, FIELDS))
                counts["reads"] += 2
                version = 0
    finally:
        writer.close()


async def sweep(trawl, folder, round_no, n_readers, n_trials):
    """(steps a second, processor seconds of the server, events and reads)"""
    store = pathlib.Path(folder, "s%d-%d.db" % (round_no, n_readers))
    config = pathlib.Path(folder, "c.ini")
    config.write_text(CONFIG)
    run = await asyncio.create_subprocess_exec(trawl, "sweep", config, "--store", store, "--name", "s", "--trials", str(n_trials), "-q",
                                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counts, used, server, readers = {"events": 0, "reads": 0}, 0.0, None, []
    if n_readers:
        while not store.exists():
            await asyncio.sleep(0.02)
        server, port = measure.serve(trawl, store)
        readers = [asyncio.create_task(read_pages(port, counts)) for _ in range(n_readers)]
    await run.wait()
    if server:
        used = measure.cpu_s(server.pid)
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        server.terminate()
        server.wait()
    if n_readers and not counts["events"]:
        sys.exit("the readers got no event")
    db = sqlite3.connect(store)
    steps, seconds, wall = db.execute("SELECT sum(env_steps), sum(cost_s), (max(finished_ms) - min(started_ms)) / 1000.0 FROM trial WHERE state = 'done'").fetchone()
    db.close()
    return steps / seconds, used, wall, counts


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trawl", type=os.path.abspath)
    for name, default in (("readers", 50), ("rounds", 5), ("trials", 15)):
        parser.add_argument(name, type=int, nargs="?", default=default)
    args = parser.parse_args()
    trawl, n_readers, rounds, trials = args.trawl, args.readers, args.rounds, args.trials
    speeds = {0: [], n_readers: []}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(rounds):
            for n in (0, n_readers) if k % 2 == 0 else (n_readers, 0):
                speed, used, wall, counts = await sweep(trawl, folder, k, n, trials)
                speeds[n].append(speed)
                print("round %d, %2d readers: %6.0f k steps/s, %.0f s, load %.1f%s" % (k + 1, n, speed / 1e3, wall, os.getloadavg()[0],
                      "; server %.2f s of processor, %d events, %d reads" % (used, counts["events"], counts["reads"]) if n else ""), flush=True)
    alone, beside = (statistics.median(speeds[n]) for n in (0, n_readers))
    print("median: alone %.0f k, with %d readers %.0f k steps/s (%+.1f %%)" % (alone / 1e3, n_readers, beside / 1e3, 100 * (beside / alone - 1)))


if __name__ == "__main__":
    asyncio.run(main())
