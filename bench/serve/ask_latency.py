#!/usr/bin/env python3
"""ask_latency.py - how long clients wait for an answer of ask, report and tell, in a study of many finished trials.

usage: bench/serve/ask_latency.py TRAWL [--trials N] [--clients N] [--asks N] [--train SECONDS]

Adds N trials (1000) to a study of five parameters and method pareto, then lets clients (8) ask, report once, train for
SECONDS (1: asleep) and tell, until ASKS (400) trials were asked for. An ask counts until its trial is there, however many
answers say "ask again". Prints milliseconds: half of the requests were faster, 95 % were faster, the slowest."""
import argparse
import http.client
import json
import math
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import time

STUDY = """
[sweep]
method = pareto
devices = none
confirm = 0.2
trials = 100000
""" + "".join("""
[sweep.p%d]
type = float
distribution = log
min = 0.0001
max = 1
""" % i for i in range(5))


class Client:
    def __init__(self, url):
        """The address that `trawl serve` prints, with a token where it wants one."""
        port, token = re.search(r":(\d+)/(?:\?token=(\w+))?", url).groups()
        self.connection = http.client.HTTPConnection("127.0.0.1", int(port))
        self.headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}

    def post(self, path, body):
        self.connection.request("POST", "/api/v1/studies/a/" + path, json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        data = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit("%s: %d %s" % (path, answer.status, data))
        return data


def result(params):
    """A front: what costs more scores more, up to a point."""
    x = [math.log10(v) for v in params.values()]
    cost = 1 + 10 * (x[0] + 4) / 4
    return -sum((v + 2) ** 2 for v in x[1:]) + math.log(cost) + random.gauss(0, 0.1), cost * math.exp(random.gauss(0, 0.05))


def work(url, name, left, train_s, times, lock):
    c = Client(url)
    while True:
        with lock:
            if left[0] == 0:
                return
            left[0] -= 1
        begun = time.perf_counter()
        while (t := c.post("trials:ask", {"client": name}))["trial"] is None:
            time.sleep(t["wait_s"])
        asked = time.perf_counter()
        here = "trials/%d:" % t["trial"]
        score, cost = result(t["params"])
        c.post(here + "report", {"lease": t["lease"]["token"], "step": 1, "metrics": {"score": score}, "seq": 1})
        reported = time.perf_counter()
        time.sleep(train_s * random.uniform(0.5, 1.5))
        ready = time.perf_counter()
        c.post(here + "tell", {"lease": t["lease"]["token"], "score": score, "cost": cost, "step": 2})
        with lock:
            for what, seconds in (("ask", asked - begun), ("report", reported - asked), ("tell", time.perf_counter() - ready)):
                times[what].append(1000 * seconds)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trawl")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--asks", type=int, default=400)
    parser.add_argument("--train", type=float, default=1.0)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, config = pathlib.Path(folder, "s.db"), pathlib.Path(folder, "s.ini")
        config.write_text(STUDY)
        daemon = subprocess.Popen([a.trawl, "daemon", "--store", store], stderr=subprocess.DEVNULL)
        while not pathlib.Path(str(store) + ".sock").exists():  # else the sweep below would run the study itself
            time.sleep(0.1)
        server = subprocess.Popen([a.trawl, "serve", "--store", store, "--port", "0", "--control", "--no-token"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        url = server.stdout.readline()
        watcher = subprocess.Popen([a.trawl, "sweep", config, "--store", store, "--name", "a", "-q"], stderr=subprocess.DEVNULL)
        try:
            while subprocess.run([a.trawl, "show", "a", "--store", store], capture_output=True, check=False).returncode != 0:
                time.sleep(0.1)
            watcher.kill()
            c = Client(url)
            for i in range(a.trials):
                params = {"p%d" % k: 10 ** random.uniform(-4, 0) for k in range(5)}
                score, cost = result(params)
                c.post("trials:add", {"params": params, "score": score, "cost": cost, "key": str(i)})
            times, lock, left = {"ask": [], "report": [], "tell": []}, threading.Lock(), [a.asks]
            threads = [threading.Thread(target=work, args=(url, "c%d" % i, left, a.train, times, lock)) for i in range(a.clients)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            for p in (watcher, server, daemon):
                p.kill()
                p.wait()
    print("%d trials there, %d clients, %.3g s of training, %d asks" % (a.trials, a.clients, a.train, a.asks))
    for what, values in times.items():
        print("%-6s  50 %%: %6.1f ms   95 %%: %6.1f ms   slowest: %6.1f ms" % (
            what, quantile(values, 0.5), quantile(values, 0.95), max(values)))


if __name__ == "__main__":
    main()
