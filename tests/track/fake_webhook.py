"""fake_webhook.py - a receiver of Trawl's webhook as its documentation describes one, checking every request.

The signature is HMAC-SHA256 of "TIME.BODY" under the shared secret, in the header "X-Trawl-Signature: t=TIME,v1=HEX";
a request older than five minutes is refused: it cannot be replayed. Events have rising ids; a known event is ignored and
counted.
"""
import hashlib
import hmac
import re
import time

from faults import Fake, Reply

SIGNATURE = re.compile(r"t=([0-9]+),v1=([0-9a-f]{64})\Z")


class FakeWebhook(Fake):
    def __init__(self, port=0, tls=None, path="/hook", secret=None):
        super().__init__(port, tls)
        self.path, self.secret = path, secret
        self.url += path
        self.events = {}  # (run key, id) -> event
        self.repeats = 0
        self.order = []  # ids as they came, without repeats

    def of_type(self, kind):
        return [event for event in self.events.values() if event["type"] == kind]

    def answer(self, request):
        if request.method != "POST" or request.path != self.path:
            return Reply(404, {"error": "no such hook"})
        if self.secret is None:
            if "x-trawl-signature" in request.headers:
                return Reply(400, {"error": "a signature without a secret"})
        else:
            parts = SIGNATURE.match(request.headers.get("x-trawl-signature", ""))
            if not parts or abs(time.time() - int(parts.group(1))) > 300:
                return Reply(401, {"error": "no signature, or too old"})
            want = hmac.new(self.secret.encode(), parts.group(1).encode() + b"." + request.body, hashlib.sha256)
            if not hmac.compare_digest(want.hexdigest(), parts.group(2)):
                return Reply(401, {"error": "wrong signature"})
        body = request.json()
        assert request.headers["content-type"] == "application/json"
        assert set(body) == {"version", "study", "run", "trial", "events"}, sorted(body)
        assert body["version"] == 1 and body["events"], body
        for event in body["events"]:
            at = body["run"], event["id"]
            if at in self.events:
                assert self.events[at] == event, "an event was told again with other words"
                self.repeats += 1
            else:
                self.order.append(event["id"])
                self.events[at] = event
        return Reply(204, b"")
