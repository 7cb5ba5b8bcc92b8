"""browser.py - a headless Chromium, driven by its DevTools protocol over a pipe (standard library only).

Console output, requested addresses and errors of a page are kept: `problems()`,
`foreign_requests()`.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def origin(url):
    """Scheme, host and port; of a file its folder."""
    return url.split("#")[0].rsplit("/", 1)[0] if url.startswith("file:") else "/".join(url.split("/", 3)[:3])


class PageError(AssertionError):
    """The page is not in the state that the test expects."""


class Browser:
    def __init__(self, width=1400, height=1000):
        self.profile = tempfile.mkdtemp(prefix="trawl-browser-")
        to_child, self.write_fd = os.pipe()
        self.read_fd, from_child = os.pipe()

        def place():
            # 3 and 4 are where Chromium looks; first out of the way, then there
            a, b = os.dup(to_child), os.dup(from_child)
            high_a, high_b = os.dup2(a, 63), os.dup2(b, 64)
            os.dup2(high_a, 3)
            os.dup2(high_b, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--force-color-profile=srgb", "--user-data-dir=" + self.profile, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place)
        os.close(to_child)
        os.close(from_child)
        self.pending = b""
        self.number = 0
        self.events = []
        self.requests = []
        self.opened = set()
        self.console = []
        self.size = width, height
        self.session = self.new_tab()

    def close(self):
        try:
            self.send("Browser.close", session=None)
            self.process.wait(60)
        except (OSError, PageError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    # -- protocol --

    def receive(self, timeout_s):
        """One message, or None when none comes in time."""
        until = time.monotonic() + timeout_s
        while b"\0" not in self.pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                return None
            more = os.read(self.read_fd, 1 << 20)
            if not more:
                raise PageError("the browser has gone")
            self.pending += more
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def take(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append((params["request"]["url"], params["documentURL"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.console.append(params["type"] + ": " + " ".join(str(a.get("value", a.get("description", ""))) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append("log: " + params["entry"]["text"] + " " + params["entry"].get("url", ""))
        if method:
            self.events.append((method, params))
            del self.events[:-2000]

    def send(self, method, params=None, session="own", timeout_s=240):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        until = time.monotonic() + timeout_s
        while True:
            answer = self.receive(until - time.monotonic())
            if answer is None:
                raise PageError("%s: no answer in %d s" % (method, timeout_s))
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise PageError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self.take(answer)

    # -- pages --

    def new_tab(self):
        """A further tab; `session = ` it makes it the one that the other calls mean."""
        target = self.send("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        self.session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(domain + ".enable")
        self.resize(*self.size)
        return self.session

    def resize(self, width, height, phone=False):
        self.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone})

    def scheme(self, name):
        self.send("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, url):
        self.opened.add(origin(url))
        self.send("Page.navigate", {"url": url})

    def run(self, code):
        """The value of an expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", {"expression": code, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in answer:
            raise PageError("%s\nin the page: %s" % (answer["exceptionDetails"].get("exception", {}).get("description", answer["exceptionDetails"]["text"]), code))
        return answer["result"].get("value")

    def wait(self, code, what=None, timeout_s=240):
        """Until the expression is true in the page; returns its value."""
        until = time.monotonic() + timeout_s
        while True:
            try:
                value = self.run("((v) => (v instanceof Node ? true : v))(%s)" % code)
            except PageError as problem:  # between two pages
                if "context" not in str(problem) and "navigat" not in str(problem):
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > until:
                raise PageError("did not come in %d s: %s\nthe page shows: %s\nconsole: %s" % (timeout_s, what or code, (self.run("document.body?.innerText") or "")[:600], self.console[-3:]))
            time.sleep(0.05)

    def box(self, selector):
        """Place of an element after it has been scrolled to: (x, y, width, height)."""
        found = self.run("(() => { const e = document.querySelector(%s); if (!e) return null; e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()" % json.dumps(selector))
        if found is None:
            raise PageError("no element " + selector)
        return found

    def mouse(self, kind, x, y, button="none", **more):
        self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": button, "buttons": 1 if button == "left" else 0, "clickCount": 1, **more})

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, "left")
        self.mouse("mouseReleased", x, y, "left")

    def click(self, selector, timeout_s=240):
        """Clicks into the middle of an element; again, where a page that still lays itself out moved it away meanwhile."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            x, y, width, height = self.box(selector)
            self.run("(() => { const aim = globalThis.aim = {hit: false}; document.addEventListener('click', (e) => { aim.hit ||= Boolean(e.target.closest(%s)); }, {capture: true, once: true}); })()" % json.dumps(selector))
            self.click_at(x + width / 2, y + height / 2)
            try:
                if self.run("globalThis.aim?.hit !== false"):
                    return
            except PageError as problem:  # it led to another page
                if "context" in str(problem) or "navigat" in str(problem):
                    return
                raise
        raise PageError("no click reached " + selector)

    def drag(self, x0, y0, x1, y1, steps=6):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, "left")
        for i in range(1, steps + 1):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, "left")
        self.mouse("mouseReleased", x1, y1, "left")

    def key(self, key, text=None):
        number = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number, **({"text": text} if text and kind == "keyDown" else {})})

    def type(self, text):
        self.send("Input.insertText", {"text": text})

    def screenshot(self, path, full=True):
        clip = {}
        if full:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}, "captureBeyondViewport": True}
        picture = self.send("Page.captureScreenshot", {"format": "png", **clip})
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_bytes(base64.b64decode(picture["data"]))

    # -- what must not happen --

    def problems(self):
        """Errors and warnings of the console since the last call."""
        found, self.console = self.console, []
        return found

    def foreign_requests(self):
        """What pages asked of an origin other than their own, or of one that the test never opened. A request is held against
        the document that made it: reports of an earlier page's requests can come late."""
        return [url for url, document in self.requests
                if not url.startswith(("about:", "data:")) and not (url.removeprefix("blob:").startswith(origin(document) + "/") and origin(document) in self.opened)]
