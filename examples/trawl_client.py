"""trawl_client.py - trains a study's trials from Python. One file of the standard library: copy it.

    from trawl_client import Study
    for trial in Study("http://127.0.0.1:8080", "first").trials():
        for step in range(1, 101):
            score = train(step, **trial.params)              # your own
            if trial.report(step, score=score):              # at least every sweep.lease_s seconds
                break                                        # the study wants it to stop
        trial.tell(score)
"""
from __future__ import annotations

import http.client
import itertools
import json
import math
import os
import random
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterator


class Refused(Exception):
    """The server understood the request and refused it; the text has the reason."""


class Study:
    def __init__(self, url: str, name: str, token: str = "", client: str = "", patience_s: float = 3600.0) -> None:
        self.base = "%s/api/v1/studies/%s/" % (url.rstrip("/"), urllib.parse.quote(name, safe=""))
        self.headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}
        self.client, self.patience_s = client or "%s-%d" % (socket.gethostname(), os.getpid()), patience_s

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request, again until it is answered: a server that is away costs nothing, and no request counts twice."""
        data, end = json.dumps({k: v for k, v in body.items() if v is not None}).encode(), time.monotonic() + self.patience_s
        for attempt in itertools.count():
            try:
                try:
                    with urllib.request.urlopen(urllib.request.Request(self.base + path, data, self.headers), timeout=60) as answer:
                        return dict(json.load(answer))
                except urllib.error.HTTPError as e:
                    text = e.read().decode(errors="replace")
                    if e.code < 500:
                        raise Refused(text) from e
            except (OSError, ValueError, http.client.HTTPException) as e:  # the last: an answer that ends in the middle
                text = str(e)
            if time.monotonic() > end:
                raise TimeoutError(text)
            time.sleep(random.uniform(0.1, min(30.0, 0.5 * 2**min(attempt, 8))))
        raise AssertionError

    def trials(self) -> Iterator[Trial]:
        """Trials to train, one after the other, until the study has ended."""
        while (answer := self.call("trials:ask", {"client": self.client}))["state"] != "ended":
            if answer["trial"] is None:
                time.sleep(answer["wait_s"])
            else:
                yield Trial(self, answer)

    def enqueue(self, **params: Any) -> int:
        return int(self.call("trials:enqueue", {"params": params})["trial"])

    def add(self, params: dict[str, Any], score: float, cost: float, key: str | None = None, env: str | None = None) -> int:
        return int(self.call("trials:add", {"params": params, "score": score, "cost": cost, "key": key, "env": env})["trial"])


class Trial:
    def __init__(self, study: Study, answer: dict[str, Any]) -> None:
        self.study, self.number, self.seed = study, answer["trial"], answer["seed"]
        self.params = {name.replace("-", "_"): value for name, value in answer["params"].items()}  # as keywords are spelt
        self.argv, self.config, self.ini, self.env = answer["argv"], answer["config"], answer["ini"], answer.get("env")
        self.lease, self.seq = answer["lease"]["token"], itertools.count(int(time.time() * 1000))

    def report(self, step: int, cost: float | None = None, **metrics: float) -> bool:
        """Keeps the trial ours; True: stop, and tell what there is. NaN and infinite metrics are left out."""
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        body = {"lease": self.lease, "step": step, "cost": cost, "metrics": finite, "seq": next(self.seq)}
        return bool(self.study.call("trials/%d:report" % self.number, body)["stop"])

    def tell(self, score: float | None = None, cost: float | None = None, state: str = "done", reason: str | None = None,
             step: int | None = None) -> dict[str, Any]:
        """The result; a score that is NaN or infinite is a failure. `counted` of the answer is false when it came too late."""
        if score is not None and not math.isfinite(score):
            score, state, reason = None, "failed" if state == "done" else state, reason or "score is %s" % score
        score = None if score is None else float(score)
        body = {"lease": self.lease, "state": state, "score": score, "cost": cost, "reason": reason, "step": step}
        return self.study.call("trials/%d:tell" % self.number, body)
