"""A night in fast motion: sweeps begin, end, die and are resumed, the server is ended, killed and frozen, the store is moved away and
back, and all the while tabs of every kind are open in one browser. Each tab must come to show what the store holds, or say that it does
not know.

Without TRAWL_NIGHT a short one, which measures no time; TRAWL_NIGHT=SWEEPS,TABS,RESTARTS makes a long one, in which each tab has
5 seconds (tools/nightly).
"""

import contextlib
import itertools
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import browser
import tap

SWEEPS, TABS, RESTARTS = (int(n) for n in os.environ.get("TRAWL_NIGHT", "3,7,2").split(","))
LIMIT_S = 5 if "TRAWL_NIGHT" in os.environ else tap.PATIENCE_S
TRIALS = 6

if browser.find() is None:
    print("1..0 # SKIP no Chromium here (Debian: chromium)")
    sys.exit(0)

# What a tab shows: [kind, what it says of itself, {study: [state, trials done]}]; null: not known from this page.
SHOWN = """(() => {
  const dot = document.querySelector('#live'), gone = !document.querySelector('#gone').hidden;
  const says = dot.className.includes('lost') || gone ? 'stale: ' + dot.textContent + document.querySelector('#gone').textContent : dot.textContent;
  const studies = {}, chip = document.querySelector('h1 .chip')?.textContent ?? null, name = decodeURIComponent(location.pathname.split('/')[2] ?? '');
  for (const tr of document.querySelectorAll('tr[data-study]')) studies[tr.dataset.study] = [tr.querySelector('.chip').textContent, Number(tr.querySelector('.progress').textContent.match(/^(\\d+)/)[1])];
  if (location.pathname.includes('/trial/')) return ['trial', says, {[name]: [chip, null]}];
  const tile = document.querySelector('.tiles .tile:last-child b');
  if (location.pathname.startsWith('/study/')) studies[name] = [chip, tile ? Number(tile.textContent) : null];
  if (location.pathname === '/compare') {
    const want = new URLSearchParams(location.search).get('studies');
    studies[want] = [null, [...document.querySelectorAll('.series-list > div')].filter((row) => row.textContent.startsWith(want + ': best config')).length];
  }
  return [location.pathname, says, studies];
})()"""


class Night:
    def __init__(self, folder):
        self.folder, self.store, self.port, self.started = folder, folder / "night.db", tap.free_port(), 0
        self.config = tap.write(folder, "night.ini", tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 600k"))
        self.server = self.sweep = None
        self.tabs, self.slowest = [], 0.0
        self.away = False
        self.b = browser.Browser(1200, 900)
        self.serve()

    def close(self):
        for process in (self.sweep, self.server):
            if process and process.poll() is None:
                process.kill()
                process.communicate()
        self.b.close()

    # -- what happens --

    def serve(self):
        self.server = subprocess.Popen([tap.TRAWL, "serve", "--store", str(self.store), "--port", str(self.port), "--token-file", str(self.folder / "token")], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = "%s?token=%s" % (self.server.stdout.readline().strip(), (self.folder / "token").read_text().strip())

    def end_server(self, how):
        self.server.send_signal(how)
        self.server.communicate(timeout=tap.PATIENCE_S)

    def begin_sweep(self, *more):
        self.sweep = subprocess.Popen([tap.TRAWL, "sweep", *map(str, more), "--store", str(self.store), "-q"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def next_sweep(self):
        self.begin_sweep(self.config, "--name", "s%d" % self.started, "--trials", TRIALS)
        self.started += 1
        tap.wait_for(lambda: "s%d" % (self.started - 1) in self.truth())

    def truth(self):
        """{study: (state that the page may name, trials, trials done)} as the store has it, and which trial states."""
        rows = tap.rows(self.store, "SELECT s.name, s.state, s.trials_max, count(t.id), sum(t.state = 'done'), sum(t.state IN ('running', 'queued')) "
                                    "FROM study s LEFT JOIN trial t ON t.study_id = s.id GROUP BY s.id")
        return {name: ("over" if state == "ended" or (n >= limit and not open_) else "open", n, done or 0) for name, state, limit, n, done, open_ in rows}

    # -- what the tabs show --

    def open_tabs(self, want):
        kinds = itertools.cycle(("/", "/study/{}", "/study/{}?tab=trials", "/study/{}?tab=progress", "/study/{}/trial/1", "/compare?studies={}", "/study/{}?tab=params"))
        for i, kind in zip(range(want), kinds):
            tab = self.b.new_tab() if i else self.b.session
            self.tabs.append(tab)
            address = self.url if i == 0 else self.url.split("?")[0].rstrip("/") + kind.format("s%d" % (i * SWEEPS // (want + 1)))
            self.b.open(address)
            self.b.wait("document.readyState === 'complete' && document.querySelector('#live')?.textContent", "tab %d at %s" % (i, address))

    def wrong(self, tab, then, must_be_live):
        """Why this tab is neither right nor honest, or None; then: the truth some seconds ago."""
        self.b.session = tab
        path, says, shown = self.b.run(SHOWN)
        if says.startswith("stale"):
            return "%s is %s" % (path, says) if must_be_live else None
        if says != "live":
            return "%s says '%s'" % (path, says)
        now = self.truth()
        for name, (state, n, done) in then.items():
            if path == "/" and name not in shown:
                return "%s lacks %s" % (path, name)
            if name not in shown:
                continue
            chip, count = shown[name]
            if path == "trial":
                if state == "over" and now[name][0] == "over" and chip != "done":
                    return "trial 1 of %s is %s, the store: done" % (name, chip)
                continue
            over = now[name][0] == "over" and state == "over"
            if chip is not None and over != (chip in ("finished", "ended")) and (over or now[name][0] == state):
                return "%s says %s is %s, the store: %s" % (path, name, chip, state)
            if count is not None and count < (n if path == "/" else min(1, done) if path == "/compare" else done):
                return "%s shows %d trials of %s, the store has %s" % (path, count, name, (n, done))
        return None

    def check(self, what, must_be_live=False, must_be_stale=False):
        """Every tab becomes right or honest in time."""
        then, begin = {} if self.away else self.truth(), time.monotonic()
        while True:
            if must_be_stale:
                bad = []
                for tab in self.tabs:
                    self.b.session = tab
                    path, says, _ = self.b.run(SHOWN)
                    if not says.startswith("stale"):
                        bad.append("%s says '%s'" % (path, says))
            else:
                bad = [problem for problem in (self.wrong(tab, then, must_be_live) for tab in self.tabs) if problem]
            took = time.monotonic() - begin
            if not bad:
                break
            assert took < LIMIT_S, "%s: after %.1f s %d of %d tabs are wrong: %s" % (what, took, len(bad), len(self.tabs), bad[:4])
            time.sleep(0.1)
        self.slowest = max(self.slowest, took)
        print("# %-44s %.2f s" % (what, took), flush=True)

    def finish_sweep(self):
        self.sweep.communicate(timeout=tap.PATIENCE_S)

    def move(self, source, target):
        for suffix in ("", "-wal", "-shm", ".lock"):
            path = pathlib.Path(str(source) + suffix)
            if path.exists():
                path.rename(str(target) + suffix)


def test_a_night_in_fast_motion(folder):
    night = Night(folder)
    try:
        night.next_sweep()
        night.open_tabs(TABS)
        night.check("opened while the first sweep runs")
        restarts = 0
        for i in range(1, SWEEPS):
            night.finish_sweep()
            night.check("sweep %d has ended" % (i - 1), must_be_live=True)
            night.next_sweep()
            night.check("sweep %d has begun" % i, must_be_live=True)
            if restarts < RESTARTS:
                how = (signal.SIGTERM, signal.SIGKILL)[restarts % 2]
                night.end_server(how)
                night.check("server ended by %s" % how.name, must_be_stale=True)
                night.serve()
                night.check("server is back", must_be_live=True)
                restarts += 1
            if i % 4 == 2:  # dies in the middle, and continues
                night.sweep.kill()
                night.sweep.communicate()
                night.check("sweep %d was killed" % i, must_be_live=True)
                night.begin_sweep("--resume", "s%d" % i)
                night.check("sweep %d was resumed" % i, must_be_live=True)
            if i % 5 == 3:
                night.server.send_signal(signal.SIGSTOP)
                night.check("server stands still", must_be_stale=True)
                night.server.send_signal(signal.SIGCONT)
                night.check("server moves again", must_be_live=True)
        while restarts < RESTARTS:
            night.end_server(signal.SIGTERM)
            night.serve()
            night.check("server is back at once", must_be_live=True)
            restarts += 1
        night.finish_sweep()
        night.check("the last sweep has ended", must_be_live=True)
        night.move(night.store, folder / "elsewhere.db")
        night.away = True
        night.check("store moved away", must_be_stale=True)
        night.move(folder / "elsewhere.db", night.store)
        night.away = False
        night.check("store is back", must_be_live=True)
        night.begin_sweep("--resume", "s0", "--trials", 2 * TRIALS)
        tap.wait_for(lambda: night.truth()["s0"][2] > TRIALS, night.sweep)
        night.check("an old study was resumed", must_be_live=True)
        night.finish_sweep()
        night.check("and has ended", must_be_live=True)
        print("# slowest: %.2f s; %d sweeps, %d tabs, %d restarts" % (night.slowest, night.started, len(night.tabs), restarts), flush=True)
        bad = [text for text in night.b.problems() if not re.search("ERR_CONNECTION|Failed to load resource|ERR_INCOMPLETE|ERR_EMPTY", text)]
        tap.equal(bad, [])
    finally:
        night.close()


class Relay:
    """A reverse proxy that passes everything on, answers with a status of its own, or is silent."""
    def __init__(self, port):
        self.to, self.mode, self.open = port, "pass", set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def set(self, mode):
        """"pass", "silent", or a status line; open connections end."""
        self.mode = mode
        for s in list(self.open):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.handle, args=(client,), daemon=True).start()

    def handle(self, client):
        self.open.add(client)
        with client, contextlib.suppress(OSError):
            if self.mode == "silent":
                client.recv(1)
                threading.Event().wait(60)
            elif self.mode != "pass":
                client.recv(65536)
                client.sendall(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % self.mode.encode())
            else:
                with socket.create_connection(("127.0.0.1", self.to)) as server:
                    self.open.add(server)
                    back = threading.Thread(target=self.copy, args=(server, client), daemon=True)
                    back.start()
                    self.copy(client, server)
                    back.join()
                    self.open.discard(server)
        self.open.discard(client)

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def test_a_study_without_a_result_is_compared_once_it_has_one(folder):
    """The store has it, at rest and without a trial; the page is not loaded again."""
    store, config = folder / "s.db", tap.write(folder, "s.ini", tap.TINY_SWEEP)
    table = tap.write(folder, "none.csv", "state,train.learning_rate,train.gamma,policy.hidden_size\nqueued,0.01,0.9,8\n")
    tap.run("import", table, "--study", "a", "--config", config, "--store", store)
    server = tap.start("serve", "--store", store, "--port", 0)
    address = server.stdout.readline().strip()
    b = browser.Browser()
    try:
        b.open(address.replace("/?", "/compare?studies=a&") if "?" in address else address + "compare?studies=a")
        b.wait("document.querySelector('#live')?.textContent === 'live' && document.body.textContent.includes('Nothing to compare yet')")
        b.run("window.mark = 1")
        tap.run("sweep", "--resume", "a", "--store", store, "--trials", 2, "-q")
        b.wait("document.querySelector('.series-list > div')?.textContent.startsWith('a: best config')")
        tap.equal(b.run("window.mark"), 1)
    finally:
        b.close()


def test_pages_come_back_after_every_kind_of_failure(folder):
    """What changed meanwhile is there; the page is the same one, not loaded again."""
    store, config = folder / "s.db", tap.write(folder, "s.ini", tap.TINY_SWEEP)
    tap.run("sweep", config, "--store", store, "--name", "a", "--trials", 2, "-q")
    server = tap.start("serve", "--store", store, "--port", 0)
    address = urllib.parse.urlsplit(server.stdout.readline().strip())
    relay = Relay(address.port)
    b = browser.Browser()
    try:
        b.open("http://127.0.0.1:%d/%s" % (relay.port, "?" + address.query if address.query else ""))
        b.wait("document.querySelector('#live')?.textContent === 'live' && document.querySelectorAll('tr[data-study]').length === 1")
        b.run("window.mark = 1")
        for n, mode in enumerate(("502 Bad Gateway", "503 Service Unavailable", "401 Unauthorized", "silent"), 2):
            relay.set(mode)
            b.wait("document.querySelector('#live').className.includes('lost')", "the page says that it is not connected: " + mode)
            assert "data of" in b.run("document.querySelector('#live').textContent")
            if mode.startswith("401"):
                b.wait("document.querySelector('#gone a')?.getAttribute('href') === '/login?next=%2F'")
            tap.run("sweep", config, "--store", store, "--name", "s%d" % n, "--trials", 1, "-q")
            relay.set("pass")
            b.wait("document.querySelector('#live').textContent === 'live' && document.querySelectorAll('tr[data-study]').length === %d" % n, "back after " + mode)
            assert b.run("document.querySelector('#gone').hidden")
        tap.equal(b.run("window.mark"), 1)
    finally:
        b.close()
