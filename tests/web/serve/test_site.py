"""`trawl report --site` in a real browser, from disk and from a plain web server: the pages hold what the server's hold, policies play in the
page as Trawl plays them, and nothing but the folder is read."""

import atexit
import contextlib
import functools
import http.server
import json
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile
import threading

import browser
import tap
import test_gym
from serve_client import Server
from tap import equal, run

if browser.find() is None:
    print("1..0 # SKIP no Chromium here (Debian: chromium), the pages were not looked at")
    sys.exit(0)

SWEEP = """
[env]
name = squared
[policy]
hidden_size = 16
[train]
total_agents = 64
horizon = 16
minibatch_size = 256
total_timesteps = 20000
device = cpu
[sweep]
trials = 10
keep = all
""" + tap.space("""
train.learning_rate: min = 0.001; max = 0.03
train.gamma: min = 0.9; max = 0.999
""")
ODD = "o'dd <b>& 50%"


@functools.lru_cache(None)
def made():
    """(store, folder of the site): two studies, one of a name that is odd in addresses and in HTML."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-site-"))
    atexit.register(shutil.rmtree, folder, True)
    store = folder / "s.db"
    (folder / "s.ini").write_text(SWEEP)
    for k, name in enumerate(("one", "two")):
        run("sweep", folder / "s.ini", "--sweep.seed", k + 3, "--store", store, "--name", name)
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE study SET name = ?, checksum = NULL WHERE name = 'two'", (ODD,))
    run("report", "one", ODD, "--store", store, "--site", folder / "site")
    return store, folder / "site"


@functools.lru_cache(None)
def page():
    b = browser.Browser()
    atexit.register(b.close)
    return b


def look(address, ready):
    b = page()
    b.open("about:blank")
    b.wait("location.href === 'about:blank'")
    b.problems()
    b.requests.clear()
    b.open(address)
    b.wait("(%s) || document.querySelector('main .empty')?.innerText.includes('met an error')" % ready)
    assert not b.run("document.querySelector('main .empty')?.innerText.includes('met an error')"), b.run("document.body?.innerText")
    return b


def clean():
    equal(page().problems(), [])
    equal(page().foreign_requests(), [])


VIEWS = {"": "document.querySelectorAll('.studies tbody tr').length === 2",
         "#/study/one": "document.querySelector('.front-plot canvas.marks') && document.querySelector('.pick-result .params') && document.querySelector('.mark.interval')",
         "#/study/one?tab=params": "document.querySelectorAll('.slice canvas.marks').length === 2 && document.querySelector('.proposals li')",
         "#/study/one?tab=trials": "document.querySelectorAll('.grid-row').length === 10",
         "#/study/one?tab=curves": "document.querySelector('#all-curves canvas')?.getAttribute('aria-label')",
         "#/study/one?tab=progress": "document.querySelectorAll('.chart canvas').length >= 2 && document.querySelector('.timeline canvas')",
         "#/study/one/trial/3": "document.querySelector('.config') && document.querySelectorAll('#curves canvas').length > 3",
         "#/study/one/trial/3?against=4&show=against": "document.querySelector('.config tr.against')",
         "#/compare?studies=one,o'dd%2520%253Cb%253E%2526%252050%2525": "document.querySelectorAll('.series-list > div').length === 2 && document.querySelector('.chart canvas')"}


def test_every_page_opens_from_disk(_):
    start = made()[1].as_uri()
    for address, ready in VIEWS.items():
        b = look("%s/index.html%s" % (start, address), ready)
        assert b.run("document.querySelector('#live').textContent").startswith("as of 2"), address
        clean()


def test_a_site_has_what_the_store_has(_):
    store, site = made()
    known = tap.show(store, "one")
    b = look("%s/index.html#/study/one?tab=trials&sort=number" % site.as_uri(), VIEWS["#/study/one?tab=trials"])
    rows = b.run("[...document.querySelectorAll('.grid-row')].sort((a, b) => a.offsetTop - b.offsetTop).map((r) => Number(r.children[5].textContent))")
    assert len(rows) == 10 and all(abs(r - t["score"]) <= 1e-3 * t["score"] for r, t in zip(rows, known["trials"])), rows
    b.click(".row-link[href$='trial/0']")
    b.wait("location.hash.startsWith('#/study/one/trial/0') && document.querySelector('.config')")
    for form in ("ini", "json", "args"):
        trial = known["study"]["best"]
        look("%s/index.html#/study/one/trial/%d" % (site.as_uri(), trial), "document.querySelector('.export a')")
        text = b.run("fetch([...document.querySelectorAll('.export a')].find((a) => a.textContent === %s).href).then((r) => r.text())" % json.dumps(form))
        own = run("export", "one", "--store", store, "--pick", "trial=%d" % trial, "--format", form)[0]
        equal(text.strip(), own.strip())
    clean()


def test_slices_and_maps_go_through_any_trial_of_the_front(_):
    """Those of the API, through each of the picks and the front's trials; what is not there is named."""
    store, site = made()
    known = tap.show(store, "one")
    front = [t["number"] for t in known["trials"] if t["on_front"]]
    b = look("%s/index.html#/study/one?tab=params" % site.as_uri(), VIEWS["#/study/one?tab=params"])
    offered = b.run("[...document.querySelectorAll('select')].at(-1) && [...document.querySelector('[aria-label^=\"where the slices\"]').options].map((o) => o.value)")
    equal((offered[:3], sorted(map(int, offered[3:]))), (["recommended", "best-run", "knee"], front))  # by cost, which is time
    for n in front:
        look("%s/index.html#/study/one?tab=params&at=%d" % (site.as_uri(), n), "[...document.querySelectorAll('p.soft.small a')].filter((a) => a.textContent === 'trial %d').length === 2" % n)
        b.wait("document.querySelectorAll('.slice.model canvas').length >= 2 && document.querySelector('#contour canvas')")
        clean()
    absent = next(t["number"] for t in known["trials"] if t["number"] not in front)
    look("%s/index.html#/study/one?tab=params&at=%d" % (site.as_uri(), absent), "document.body?.innerText.includes('does not hold')")
    page().problems()


def test_policies_play_in_the_page_as_in_trawl(folder):
    """The columns of each decision, by the numbers that `trawl export --samples` writes of the same policy."""
    store, site = made()
    best = tap.show(store, "one")["study"]["best"]
    run("export", "one", "--store", store, "--pick", "trial=%d" % best, "-o", folder / "p.safetensors", "--samples", folder / "samples.jsonl")
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    b = look("%s/index.html#/study/one/trial/%d" % (site.as_uri(), best), "document.querySelector('#play button')")
    text = (site / "data" / "s0" / "play" / ("%d.js" % best)).read_text()
    if '"policy"' not in text:
        assert shutil.which("wasm-ld") is None, "wasm-ld is here, and the policy was recorded as frames"
    b.click("#play button")
    b.wait("Number(document.querySelector('#play canvas').dataset.frames) > 20")
    assert re.match(r"step \d+, score -?[\d.]+, episode \d+", b.run("document.querySelector('.play-score').textContent"))
    if '"policy"' in text:
        data = json.loads(re.search(r",(\{.*\})\);", text, re.S).group(1))
        module = re.search(r',"(.*)"\)', (site / "data" / "games" / "squared.js").read_text()).group(1)
        bundle = (site / "assets" / "pages.js").read_text()
        b.run("globalThis.made = %s" % json.dumps([module, data["settings"], data["policy"]]))
        source = bundle.split('modules["wasm.js"] = ', 1)[1].split('modules["', 1)[0].rstrip().rstrip(";")
        got = b.run("(async () => { const wasm = {}; (%s)(wasm); const game = await wasm.openGame(...made, 1); return %s.map((s) => game.forward(s.obs, s.begins)(s.columns.length)); })()" % (source, json.dumps(samples)))
        assert len(got) == len(samples) > 30
        for ours, theirs in zip(got, samples):
            assert all(abs(a - t) <= 1e-4 * max(1, abs(t)) for a, t in zip(ours, theirs["columns"])), (ours, theirs["columns"])
    clean()


FILMED = '''
import gymnasium, numpy as np
from gymnasium import spaces


class Filmed(gymnasium.Env):
    """A bar of the right half grows by a row each step."""
    observation_space, action_space, metadata = spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2), {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.at = 0

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.at += 1
        return np.full(1, self.at / 40, np.float32), 1.0, self.at == 40, False, {}

    def render(self):
        frame = np.full((40, 60, 3), (250, 240, 10), np.uint8)
        frame[:self.at, 30:] = 20, 60, 200
        return frame
'''
SEEN = "(() => { const c = document.querySelector('.play canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, at = (x, y) => [...d.slice(4 * (y * c.width + x), 4 * (y * c.width + x) + 3)].join(); return {size: [c.width, c.height], left: at(10, 20), column: Array.from({length: c.height}, (_, y) => at(45, y)), step: Number(/step (\\d+)/.exec(document.querySelector('.play-score').textContent)[1])}; })()"


def test_frames_of_gymnasium_on_the_page(folder):
    """Each one over the one before, in a server's page and in a site; then the module is gone, and the page has Python's words."""
    python = test_gym.need()
    tap.write(folder, "films.py", FILMED)
    config = tap.write(folder, "films.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1", "name = gym:films:Filmed"))
    run("sweep", config, *python, "--store", folder / "s.db", "--name", "films", "--trials", 1, "-q", "--sweep.keep", "all", cwd=folder)
    run("report", "films", "--store", folder / "s.db", "--site", folder / "site")
    other, b = Server(folder / "s.db"), page()
    live = other.origin + "/study/films/trial/0"
    for address in (live, (folder / "site" / "index.html").as_uri() + "#/study/films/trial/0"):
        look(address, "document.querySelector('.play button')")
        b.click(".play button")
        b.wait("Number(document.querySelector('.play canvas').dataset.frames) > 5", "frames of the environment")
        seen = b.run(SEEN)
        equal((seen["size"], seen["left"]), ([60, 40], "250,240,10"))
        grown = sum(colour == "20,60,200" for colour in seen["column"])
        equal(seen["column"], ["20,60,200"] * grown + ["250,240,10"] * (40 - grown))
        assert grown == (seen["step"] - 1) % 40 + 1, seen  # an episode has 40 steps
        clean()
    (folder / "films.py").unlink()
    look(live, "document.querySelector('.play button')").click(".play button")
    said = "document.querySelector('.play-score').textContent"
    b.wait(said + ".includes('films')", "the reason")
    assert "gym:films:Filmed: no module 'films'" in b.run(said), b.run(said)
    clean()
    b.open("about:blank")
    other.end()


def test_any_web_server_shows_it(_):
    site = made()[1]

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    handler = functools.partial(Handler, directory=str(site.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start = "http://127.0.0.1:%d/site/" % server.server_address[1]
        try:
            for address in ("", "#/study/one", "#/study/one/trial/3"):
                look(start + "index.html" + address, VIEWS[address])
            page().problems()  # such a server has no favicon.ico
            look("about:blank", "true")
        finally:
            server.shutdown()


def test_what_is_no_site_is_not_written_into(folder):
    (folder / "index.html").write_text("mine")
    said = run("report", "one", "--store", made()[0], "--site", folder, code=1)[1]
    assert "holds an index.html that no --site wrote" in said, said
    equal((folder / "index.html").read_text(), "mine")
    assert "--site is a whole folder" in run("report", "one", "--store", made()[0], "--site", folder, "-o", "x.html", code=2)[1]
    run("report", "one", "one", "--store", made()[0], "--site", folder / "twice")
    equal([p.name for p in (folder / "twice" / "data").glob("s*") if p.is_dir()], ["s0"])  # named twice, it is there once
    said = run("report", "none", "--store", made()[0], "--site", folder / "other", code=1)[1]
    assert "no study 'none'; did you mean 'one'? It has: %s, one" % ODD in said, said
