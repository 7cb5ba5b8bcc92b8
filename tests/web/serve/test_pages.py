"""The pages of trawl serve in a real browser: over a recorded study of 1000 trials, and over a sweep that runs.

Each test ends with: nothing on the console, no request to another host. Screenshots of every view lie in the folder of
TRAWL_SHOTS (the build's tests/web/screenshots) afterwards, for people to look at.
"""

import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile
import time
import urllib.parse

import browser
import record
import tap
from serve_client import Server
from tap import equal, run

TRIALS = 1000
STUDY = "night"
ODD = "<img src=x onerror=alert(1)> & \"o'dd\" 50%"
SHOTS = pathlib.Path(os.environ.get("TRAWL_SHOTS", "screenshots")).resolve()

if browser.find() is None:
    print("1..0 # SKIP no Chromium here (Debian: chromium), the pages were not looked at")
    sys.exit(0)


# -- one browser, one store, one server for all tests --

@functools.lru_cache(None)
def workplace():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-pages-"))
    atexit.register(shutil.rmtree, folder, True)
    return folder


@functools.lru_cache(None)
def recorded():
    store = workplace() / "night.db"
    record.record(tap.TRAWL, store, STUDY, TRIALS)
    record.record(tap.TRAWL, store, "odd", 30, called=ODD)
    return store


@functools.lru_cache(None)
def server():
    s = Server(recorded())
    tap.started.remove(s.process)  # for later tests, too
    atexit.register(s.process.kill)
    return s


@functools.lru_cache(None)
def page():
    b = browser.Browser()
    atexit.register(b.close)
    return b


def query(sql, *values):
    return tap.rows(recorded(), sql, *values)


def trials(where, *values):
    return query("SELECT t.number FROM trial t JOIN study s ON s.id = t.study_id WHERE s.name = ? AND " + where, STUDY, *values)


def trials_column(column, number):
    return query("SELECT t.%s FROM trial t JOIN study s ON s.id = t.study_id WHERE s.name = ? AND t.number = ?" % column, STUDY, number)[0][0]


def path(tail="", name=STUDY):
    return "/study/%s%s" % (urllib.parse.quote(name, safe=""), tail)


def go(tail, ready=None, origin=None):
    b = page()
    b.open((origin or server().origin) + tail)
    b.wait("document.readyState === 'complete' && document.querySelector('main h1')", "the page " + tail)
    if ready:
        broken = "document.querySelector('main .empty')?.innerText.includes('met an error')"
        b.wait("(%s) || %s" % (ready, broken))
        assert not b.run(broken), b.run("document.querySelector('main').innerText")
    return b


def clean():
    """The checks at the end of every test."""
    b = page()
    equal(b.problems(), [])
    equal(b.foreign_requests(), [])
    b.requests.clear()


def leave():
    """Leaves the page; its requests and console output until then are ignored."""
    b = page()
    b.open("about:blank")
    b.wait("location.href === 'about:blank'")
    b.problems()
    b.requests.clear()


def text(selector):
    return page().run("document.querySelector(%s)?.innerText" % json.dumps(selector))


FRONT_READY = "document.querySelector('.front-plot canvas.marks') && document.querySelector('.pick-result .params')"
TABLE_READY = "document.querySelector('.parallel')?.dataset.drawn && document.querySelector('.grid-row') && !document.querySelector('.briefing').hidden"
FRONT_STILL = FRONT_READY + " && document.querySelector('.mark.interval') && !document.querySelector('.briefing').hidden"  # with what the model says: nothing moves any more
VIEWS = {
    "studies": ("/", "document.querySelectorAll('.studies tbody tr').length === 2"),
    "front": (path(), FRONT_STILL),
    "parameters": (path("?tab=params"), "document.querySelectorAll('.slice canvas.marks').length === 6 && document.querySelector('.proposals')"),
    "trials": (path("?tab=trials"), TABLE_READY),
    "curves": (path("?tab=curves&colour=train.gamma"), "document.querySelector('#all-curves canvas')?.getAttribute('aria-label')"),
    "progress": (path("?tab=progress"), "document.querySelectorAll('.chart canvas').length >= 3 && !document.querySelector('.briefing').hidden"),
    "all": (path("?tab=all"), FRONT_STILL + " && " + TABLE_READY + " && document.querySelectorAll('.slice canvas.marks').length === 6 && document.querySelector('.proposals') && document.querySelector('#all-curves canvas')?.getAttribute('aria-label')"),
    "trial": (path("/trial/990?against=3"), "document.querySelector('.config tr.against') && document.querySelectorAll('#curves canvas').length > 3"),
    "compare": ("/compare?" + urllib.parse.urlencode({"trials": "night%2F990,night%2F991", "studies": STUDY}), "document.querySelectorAll('.series-list > div').length === 3 && document.querySelector('.chart canvas')"),
}


def test_every_view_renders_light_dark_and_on_a_phone(_):
    for name, (address, ready) in VIEWS.items():
        for look, width, height, scheme in (("light", 1400, 1000, "light"), ("dark", 1400, 1000, "dark"), ("phone", 390, 844, "light")):
            b = page()
            b.resize(width, height, look == "phone")
            b.scheme(scheme)
            go(address, ready)
            b.wait("document.querySelector('.live').classList.contains('live') && document.querySelector('#live').textContent === 'live'")
            wide = b.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 1, "%s on %s is %d pixels wider than the window" % (name, look, wide)
            equal(b.run("[...document.querySelectorAll('img:not([alt]), canvas:not([aria-hidden]):not([role]):not(.marks)')].length"), 0)
            assert b.run("document.title").endswith("Trawl")
            time.sleep(0.3)
            b.screenshot(SHOTS / ("%s-%s.png" % (name, look)))
            clean()
    page().resize(1400, 1000)
    page().scheme("light")


# -- the front --

def places():
    """Positions of the chart's trials in the window: {number: [x, y]}, from the page itself."""
    return page().run("(() => { const p = document.querySelector('.front-plot'), b = p.getBoundingClientRect(), c = p.chart; return Object.fromEntries([...c.x].map((x, i) => [i, [x + b.left, c.y[i] + b.top]]).filter(([, [x]]) => x === x)); })()")


def test_the_front_follows_the_pointer(_):
    b = go(path(), FRONT_STILL)
    b.run("document.querySelector('.front-plot').scrollIntoView({block: 'center'})")
    best = tap.show(recorded(), STUDY)["study"]
    best = best["best"], best["best_score"]
    x, y = places()[str(best[0])]
    b.mouse("mouseMoved", x, y)
    b.wait("!document.querySelector('.tip').hidden")
    assert "Trial %d" % best[0] in text(".tip") and "best" in text(".tip"), text(".tip")
    assert "%.4g" % best[1] in text(".tip"), text(".tip")
    b.click_at(x, y)
    b.wait("location.pathname.endsWith('/trial/%d') && document.querySelector('.config')" % best[0])
    b.run("history.back()")
    b.wait("location.pathname === %s && %s" % (json.dumps(path()), FRONT_READY))
    clean()


def test_a_brush_on_the_front_filters_the_table(_):
    b = go(path(), FRONT_STILL)
    b.run("document.querySelector('.front-plot').scrollIntoView({block: 'center'})")
    left, top, width, height = b.run("(() => { const p = document.querySelector('.front-plot'), b = p.getBoundingClientRect(), c = p.chart.box; return [b.left + c.left, b.top + c.top, c.width, c.height]; })()")
    b.drag(left + 0.35 * width, top + 0.2 * height, left + 0.75 * width, top + 0.8 * height)
    b.wait("document.querySelector('.selection-bar a') && new URLSearchParams(location.search).get('f')")
    said = int(re.match(r"(\d+) of 1\u202f?000", text(".selection-bar")).group(1))
    f = dict(part.split(":", 1) for part in b.run("new URLSearchParams(location.search).get('f')").split(";"))
    cost, score = ([float(v) for v in f[key].split(":")] for key in ("cost", "score"))
    known = trials("cost_s BETWEEN ? AND ? AND score BETWEEN ? AND ?", *cost, *score)
    equal(said, len(known))
    assert 0 < said < TRIALS
    b.click(".selection-bar a")
    b.wait(TABLE_READY)
    assert text(".filters [role=status]").replace("\u202f", "") == "%d of 1000 trials" % said
    clean()


def tip():
    return page().run("[...document.querySelectorAll('.tip')].filter((t) => !t.hidden).map((t) => t.innerText).join('|')")


def point(selector, across=0.6, down=0.5):
    """Moves the pointer over the element until a tooltip is there; cards above it may come later and move it."""
    def look():
        x, y, width, height = page().box(selector)
        for dx in (0, 1):
            page().mouse("mouseMoved", x + width * across + dx, y + height * down)
        return tip()
    tap.wait_for(look)


def test_charts_show_values_under_the_pointer(_):
    b = go(path(), FRONT_STILL)
    b.box(".front-plot")
    best = tap.show(recorded(), STUDY)["study"]["best"]
    b.mouse("mouseMoved", *places()[str(best)])
    b.wait("!document.querySelector('.tip').hidden")
    params = json.loads(trials_column("params", best))
    shown_rows = dict(zip(*[iter(tip().split("\n")[2:])] * 2))
    equal(float(shown_rows["clip_coef"]), float("%.4g" % params["train.clip_coef"]))
    failed = b.run("(() => { const c = document.querySelector('.front-plot').chart; return [...c.x].filter((x, i) => x === x && ['failed', 'lost', 'stopped'].includes(c.data.state[i])).map((x) => Math.round(x)); })()")
    assert len(failed) > 50 and max(map(failed.count, failed)) <= 5, "failures on one spot: %r" % sorted(failed)
    go(path("?tab=params"), "document.querySelectorAll('.slice canvas.marks').length === 6")
    point(".slice .layer")
    assert re.match(r"learning_rate 0\.\d+\nexpected perf\n[\d.]+\n95 %", tip()), tip()
    b.mouse("mouseMoved", 5, 5)
    b.wait("![...document.querySelectorAll('.tip')].some((t) => !t.hidden)")
    point(".halves .chart canvas", 0.4, 0.06)
    assert re.match(r"train\.total_timesteps\nperf\n\d+ %\nwithin\n\d+ % to \d+ %", tip()), tip()
    go(*VIEWS["progress"])
    point(".lines")
    assert re.match(r"\d+\nexpected\n[\d.]+\nsingle runs\n[\d.]+$", tip()), tip()
    go(path("/trial/990"), "document.querySelectorAll('#curves canvas').length > 3")
    point("#curves .lines")
    at, name, value = tip().split("\n")
    known = [row[0] for row in query("SELECT value FROM metric m JOIN metric_name n ON n.id = m.name_id JOIN trial t ON t.id = m.trial_id JOIN study s ON s.id = t.study_id "
                                     "WHERE s.name = ? AND t.number = 990 AND n.name = ?", STUDY, name)]
    assert any(abs(v - float(value)) <= 1e-3 * abs(v) for v in known), (name, value, known)
    clean()


def test_turning_a_phone_keeps_dots_on_the_axes(_):
    b = page()
    off = """(() => { const c = document.querySelector('.front-plot').chart, v = c.chart.view, p = v.padding(), o = v.origin(), i = c.data.best, at = c.data.place(i);
      return Math.hypot(c.x[i] - p.left - o[0] - v.scale('x')(at.cost), c.y[i] - p.top - o[1] - v.scale('y')(at.score)); })()"""
    b.resize(390, 844, True)
    go(path(), FRONT_STILL)
    for width, height in ((844, 390), (390, 844), (1024, 768)):
        b.resize(width, height, width < 1000)
        b.wait("Math.abs(document.querySelector('.front-plot').chart.size.width - document.querySelector('.front-plot').clientWidth) < 2 && %s < 1" % off, "dots and axes agree at %d" % width)
    b.resize(1400, 1000)
    clean()


def test_the_front_zooms_and_the_address_keeps_it(_):
    b = go(path(), FRONT_STILL)
    before = b.run("document.querySelector('.front-plot').chart.domain.x")
    b.click(".tools button[aria-label='zoom in']")
    b.wait("new URLSearchParams(location.search).get('zoom')")
    zoomed = b.run("document.querySelector('.front-plot').chart.domain.x")
    assert zoomed[0] > before[0] and zoomed[1] < before[1]
    b.run("window.before = true")
    b.send("Page.reload")
    b.wait("!window.before && " + FRONT_READY)
    again = b.run("document.querySelector('.front-plot').chart.domain.x")
    assert all(abs(a / z - 1) < 1e-4 for a, z in zip(again, zoomed)), (again, zoomed)
    clean()


def test_commands_are_whole(_):
    """No number is torn in two, nothing is cut, and every command names the store by a path that holds in any folder."""
    b = page()
    for width, phone in ((390, True), (1024, False), (1400, False)):
        b.resize(width, 900, phone)
        for address, ready in ((path(), FRONT_STILL), (path("/trial/990"), "document.querySelector('.config') && document.querySelector('.command')")):
            go(address, ready)
            equal(b.run("""[...document.querySelectorAll('.command code')].flatMap((code) => [
              ...(code.scrollHeight > code.clientHeight + 1 && getComputedStyle(code).display !== 'inline' ? ['cut: ' + code.textContent] : []),
              ...[...code.querySelectorAll('.word')].filter((w) => w.offsetHeight > 1.7 * parseFloat(getComputedStyle(w).lineHeight) && w.textContent.length < 36).map((w) => 'torn: ' + w.textContent)])"""), [])
            said = b.run("[...document.querySelectorAll('.command code')].map((c) => c.textContent)")
            assert len(said) >= 2 and all("trawl " in c and c == " ".join(c.split(" ")) for c in said), said
            for c in said:
                assert "--store" not in c or " --store %s" % recorded() in c, c
    b.resize(1400, 1000)
    clean()


def test_keys_walk_along_the_front(_):
    b = go(path(), FRONT_STILL)
    front = min((t for t in tap.show(recorded(), STUDY)["trials"] if t["on_front"]), key=lambda t: t["cost_mean"])["number"]
    b.run("document.querySelector('.front-plot').focus()")
    b.key("ArrowRight")
    b.wait("!document.querySelector('.tip').hidden")
    assert "Trial %d" % front in text(".tip"), text(".tip")
    b.key("Enter")
    b.wait("location.pathname.endsWith('/trial/%d')" % front)
    b.wait("document.querySelector('.config')")
    clean()


# -- pick --

def exported(rule):
    """The trial's number that the command line picks."""
    return json.loads(run("export", STUDY, "--store", recorded(), "--pick", rule, "--format", "json")[0])["trial"]


def fetched(href):
    return page().run("fetch(%s).then((r) => r.text())" % json.dumps(href))


def test_what_is_picked_is_what_trawl_export_writes(_):
    b = go(path("?pick=budget:20"), FRONT_READY)
    for rule, setting in (("cost<=20", None), ("best", "best"), ("best-run", "best-run"), ("knee", "knee")):
        if setting:
            b.click(".segments input[value='%s'] + span" % setting)
            b.wait("new URLSearchParams(location.search).get('pick') === %s" % json.dumps(None if setting == "knee" else setting))
            b.wait("document.querySelector('.export a').href.includes('rule=%s')" % setting)
        number = int(re.search(r"Trial (\d+)", text(".pick-head")).group(1))
        for form in ("ini", "json", "args"):
            href = b.run("[...document.querySelectorAll('.export a')].find((a) => a.textContent === %s).href" % json.dumps(form))
            own, _ = run("export", STUDY, "--store", recorded(), "--pick", rule, "--format", form)
            equal(fetched(href), own)
            again, _ = run("export", STUDY, "--store", recorded(), "--pick", "trial=%d" % number, "--format", form)
            without = lambda config: [line for line in config.splitlines() if not line.startswith((";", "#"))]  # which name the rule
            equal(without(own), without(again))
    clean()


def test_the_slider_chooses_by_budget_and_by_score(_):
    b = go(path("?pick=budget"), FRONT_READY)
    for share in (0.2, 0.9):
        b.run("(() => { const s = document.querySelector('#pick-slider'); s.value = %g; s.dispatchEvent(new Event('input')); })()" % (1000 * share))
        budget = float(b.wait("new URLSearchParams(location.search).get('pick')?.split(':')[1]"))
        b.wait("document.querySelector('.export a').href.includes('budget_s=' + %s)" % json.dumps("%r" % budget if budget != int(budget) else "%d" % budget))
        best = exported("cost<=%r" % budget)
        b.wait("document.querySelector('.pick-head a').textContent === 'Trial %d'" % best)
        before = budget
        b.run("history.replaceState(null, '', location.pathname)")
    b.click(".segments input[value=score] + span")
    b.wait("new URLSearchParams(location.search).get('pick')?.startsWith('score:')")
    b.run("history.replaceState(null, '', location.pathname)")
    b.run("(() => { const s = document.querySelector('#pick-slider'); s.value = 500; s.dispatchEvent(new Event('input')); })()")
    wanted = float(b.wait("new URLSearchParams(location.search).get('pick')?.split('score:')[1]"))
    cheapest = exported("score>=%r" % wanted)
    b.wait("document.querySelector('.pick-head a').textContent === 'Trial %d'" % cheapest)
    clean()


# -- trials --

def shown():
    return int(re.match(r"[\d\u202f]+", text(".filters [role=status]")).group(0).replace("\u202f", ""))


def test_brushing_axes_filters_the_table(_):
    b = go(path("?tab=trials"), TABLE_READY)
    equal(shown(), TRIALS)
    for key in ("train.gamma", "cost"):
        x, y, width, height = b.box(".axis-hit[data-key='%s']" % key)
        b.drag(x + width / 2, y + height * 0.15, x + width / 2, y + height * 0.6)
    b.wait("!document.querySelector('[aria-busy]') && (new URLSearchParams(location.search).get('f') || '').includes('cost')")
    f = dict(part.split(":", 1) for part in b.run("new URLSearchParams(location.search).get('f')").split(";"))
    (g0, g1), (c0, c1) = ([float(v) if v else side for v, side in zip(f[key].split(":"), (-1e300, 1e300))] for key in ("train.gamma", "cost"))
    known = trials("json_extract(params, '$.\"train.gamma\"') BETWEEN ? AND ? AND cost_s BETWEEN ? AND ?", g0, g1, c0, c1)
    equal(shown(), len(known))
    assert 0 < len(known) < TRIALS
    address = b.run("location.href")
    go("/", "document.querySelector('.studies')")
    b.open(address)
    b.wait(TABLE_READY)
    equal(shown(), len(known))
    b.click(".filter-chip button")
    b.wait("document.querySelectorAll('.filter-chip').length === 1")
    clean()


def test_the_table_sorts_searches_and_hides(_):
    b = go(path("?tab=trials"), TABLE_READY)
    b.click(".grid-head button[data-key=score]")
    best = [row[0] for row in query("SELECT number FROM trial t JOIN study s ON s.id = t.study_id WHERE s.name = ? AND score IS NOT NULL ORDER BY score DESC LIMIT 3", STUDY)]
    b.wait("[...document.querySelectorAll('.grid-row')].sort((a, b) => a.offsetTop - b.offsetTop).slice(0, 3).map((r) => r.firstChild.textContent.match(/\\d+/)[0]).join() === '%s'"
           % ",".join(map(str, best)))
    assert b.run("document.querySelectorAll('.grid-row').length") < 80, "all rows are elements"
    b.run("document.querySelector('.grid').scrollTop = 1e9")
    b.wait("[...document.querySelectorAll('.grid-row')].some((r) => r.getAttribute('aria-rowindex') === '%d')" % (TRIALS + 1))
    b.run("document.querySelector('input[type=search]').focus()")
    b.type("signal")
    dead = len(trials("reason LIKE '%signal%'"))
    b.wait("document.querySelector('.filters [role=status]').textContent.startsWith('%d of')" % dead)
    b.wait("new URLSearchParams(location.search).get('q') === 'signal'")
    heads = b.run("document.querySelectorAll('.grid-head button').length")
    b.click(".columns-menu summary")
    b.click(".columns-menu label:nth-child(5) input")
    b.wait("document.querySelectorAll('.grid-head button').length === %d" % (heads - 1))
    b.run("document.querySelector('.grid').focus()")
    b.key("Home")
    b.key("Enter")
    b.wait("/\\/trial\\/\\d+$/.test(location.pathname) && document.querySelector('.config')")
    clean()


# -- a trial --

def test_a_trial_says_what_differs_and_how_to_have_it_again(_):
    b = go(path("/trial/990"), "document.querySelector('.config') && document.querySelectorAll('#curves canvas').length")
    params = json.loads(query("SELECT params FROM trial t JOIN study s ON s.id = t.study_id WHERE s.name = ? AND number = 990", STUDY)[0][0])
    rows = b.run("Object.fromEntries([...document.querySelectorAll('.config tbody tr')].map((r) => [r.children[0].textContent, r.children[1].textContent]))")
    for key, value in params.items():
        equal(float(rows[key]), float(value))
    assert any("trawl train" in line for line in b.run("[...document.querySelectorAll('.command code')].map((e) => e.textContent)"))
    for form in ("ini", "json", "args"):
        href = b.run("[...document.querySelectorAll('.export a')].find((a) => a.textContent === %s).href" % json.dumps(form))
        equal(fetched(href), run("export", STUDY, "--store", recorded(), "--pick", "trial=990", "--format", form)[0])
    b.click("#curves input[value=wall_s] + span")
    b.wait("new URLSearchParams(location.search).get('over') === 'wall_s'")
    b.run("(() => { const i = document.querySelector('#config input[type=number]'); i.value = 991; i.dispatchEvent(new Event('change')); })()")
    b.wait("document.querySelectorAll('.config tr.against').length >= 5 && location.search.includes('against=991')")
    clean()


def test_a_policy_plays_on_the_page(folder):
    store = folder / "play.db"
    config = tap.write(folder, "play.ini", tap.TINY_SWEEP.replace("name = squared\nn = 1", "name = pong"))
    run("sweep", config, "--store", store, "--name", "play", "--trials", 1, "-q", "--sweep.keep", "all")
    other = Server(store)
    b = go(path("/trial/0", "play"), "document.querySelector('.play button')", other.origin)
    b.click(".play button")
    b.wait("Number(document.querySelector('.play canvas').dataset.frames) > 10", "frames of the game")
    colors = b.run("(() => { const c = document.querySelector('.play canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()")
    assert colors >= 3, "%d colours on the canvas: nothing is drawn" % colors
    assert re.match(r"step \d+, score", text(".play-score")), text(".play-score")
    b.screenshot(SHOTS / "play-light.png", full=False)
    b.click(".play button")
    b.wait("document.querySelector('.play button').textContent === 'Watch it play'")
    clean()
    b.open("about:blank")
    other.end()


# -- what goes wrong --

def test_strange_names_are_text(_):
    b = go("/", "document.querySelectorAll('.studies tbody tr').length === 2")
    assert ODD in text(".studies"), text(".studies")
    b.run("[...document.querySelectorAll('.studies .name a')].find((a) => a.textContent === %s).click()" % json.dumps(ODD))
    b.wait(FRONT_READY)
    assert ODD in text("h1")
    equal(b.run("document.querySelectorAll('main img').length"), 0)
    for tab, ready in (("params", "document.querySelectorAll('.slice canvas.marks').length === 6"), ("trials", TABLE_READY), ("progress", "document.querySelector('.timeline canvas')")):
        go(path("?tab=" + tab, ODD), ready)
        equal(b.run("document.querySelectorAll('main script, main img, main svg[onload]').length"), 0)
    go(path("?tab=trials&hide=,", ODD), TABLE_READY)
    assert "</td><script>alert(3)</script>" in text(".grid") and '"><svg onload=alert(2)>' in text(".grid")
    go(path("/trial/1", ODD), "document.querySelector('.config')")
    assert "<script>alert(3)</script>" in text("main")
    go("/compare?" + urllib.parse.urlencode({"studies": urllib.parse.quote(ODD, safe="")}), "document.querySelectorAll('.series-list > div').length === 1")
    equal(b.run("document.querySelectorAll('main script, main img').length"), 0)
    equal([m for m, _ in b.events if m == "Page.javascriptDialogOpening"], [])
    clean()


def test_what_is_not_there_says_what_to_do(_):
    b = go(path(), FRONT_READY)
    for address, says in ((path("", "nobody"), "nobody"), (path("/trial/99999"), "99999"), ("/compare?trials=nobody%2F1", "nobody"), ("/compare", "Nothing to compare")):
        b.open(server().origin + address)
        b.wait("document.querySelector('main :is(a, button)') && document.querySelector('main :is(.empty, .warn)')?.innerText.includes(%s)" % json.dumps(says))
    b.problems()  # the browser itself logs each 404
    b.requests.clear()


def test_an_empty_store_tells_how_to_begin(folder):
    store = folder / "empty.db"
    run("sweep", tap.write(folder, "s.ini", tap.TINY_SWEEP), "--store", store, "--name", "a", "--trials", 1, "-q")
    db = sqlite3.connect(str(store), isolation_level=None)
    for table in ("metric", "curve_sum", "checkpoint", "outbox", "trial", "study"):
        db.execute("DELETE FROM " + table)
    db.close()
    other = Server(store)
    page().open(other.origin + "/")
    page().wait("document.querySelector('.empty .command')")
    assert "trawl sweep" in text(".empty .command code")
    clean()
    page().open("about:blank")
    other.end()


# -- live --

def test_a_running_sweep_is_followed(folder):
    store, config = folder / "live.db", tap.write(folder, "live.ini", tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 400k"))
    sweep = tap.start("sweep", config, "--store", store, "--name", "live", "--trials", 100000, "-q")  # more than any machine does meanwhile
    tap.wait_for(lambda: len(tap.trials_now(store, "live")) > 3, sweep)
    other = Server(store)
    b = go(path("", "live"), FRONT_READY, other.origin)
    b.run("window.mark = 1")
    done = "Number(document.querySelector('.tiles .tile:last-child b').textContent)"
    waits = []
    for _ in range(3):
        before = b.run(done)
        now = tap.wait_for(lambda: next((n for n, in tap.rows(store, "SELECT count(*) FROM trial WHERE state = 'done'") if n > before), None), sweep)
        start = time.monotonic()
        b.wait("%s >= %d" % (done, now), "trial %d on the page" % now)
        waits.append(time.monotonic() - start)
    print("# a finished trial was on the page after %s s" % ", ".join("%.2f" % w for w in waits), flush=True)
    equal(b.run("window.mark"), 1)  # without a reload
    for tab, ready in (("trials", TABLE_READY), ("progress", "document.querySelectorAll('.chart canvas').length >= 3")):
        go(path("?tab=" + tab, "live"), ready, other.origin)
        count = b.run(done)
        b.wait("%s > %d" % (done, count), "another trial")
    clean()
    other.end()


def test_a_live_front_keeps_what_people_do(folder):
    """Focus, tooltip, a drag that is under way, the selection, and the elements themselves outlive the trials that come."""
    store, config = folder / "live.db", tap.write(folder, "live.ini", tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 400k"))
    sweep = tap.start("sweep", config, "--store", store, "--name", "live", "--trials", 100000, "-q")
    tap.wait_for(lambda: len(tap.trials_now(store, "live")) > 6, sweep)
    other = Server(store)
    b = go(path("", "live"), FRONT_READY, other.origin)
    done = "Number(document.querySelector('.tiles .tile:last-child b').textContent)"

    def more(n):
        before = b.run(done)
        b.wait("%s >= %d" % (done, before + n), "%d more trials" % n)

    same = "document.querySelector('.front-plot').mark === 1 && document.querySelector('.pick-result').mark === 1"
    b.run("document.querySelector('.front-plot').mark = document.querySelector('.pick-result').mark = 1, document.querySelector('.front-plot').focus()")
    b.key("ArrowRight")
    b.wait("!document.querySelector('.tip').hidden")
    more(3)
    begin = time.monotonic()  # before the browser's reports up to now are read: what it asks for while this process stands still comes later
    assert b.run(same + " && document.activeElement.classList.contains('front-plot') && !document.querySelector('.tip').hidden")
    b.requests.clear()
    b.box(".front-plot")
    left, top, width, height = b.run("(() => { const p = document.querySelector('.front-plot'), b = p.getBoundingClientRect(), c = p.chart.box; return [b.left + c.left, b.top + c.top, c.width, c.height]; })()")
    b.mouse("mouseMoved", left + 3, top + 3)
    b.mouse("mousePressed", left + 3, top + 3, "left")
    b.mouse("mouseMoved", left + width / 2, top + height / 2, "left")
    more(3)
    assert b.run("!document.querySelector('.brush').hidden"), "the drag was lost"
    b.mouse("mouseMoved", left + width - 3, top + height - 3, "left")
    b.mouse("mouseReleased", left + width - 3, top + height - 3, "left")
    b.wait("document.querySelector('.filter-chip')", "the drag selects")
    more(3)
    assert b.run(same + " && !document.querySelector('.brush').hidden && !!document.querySelector('.filter-chip')")
    read = len([url for url, _ in b.requests if "/trials?" in url])
    assert read <= time.monotonic() - begin + 3, "%d readings of the trials: more than one a second" % read
    clean()
    other.end()


def test_the_buttons_steer_a_sweep(folder):
    """Its trials do not end by themselves: the test does not depend on time."""
    store, config = folder / "steer.db", tap.write(folder, "steer.ini", tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 2G"))
    sweep = tap.start("sweep", config, "--store", store, "--name", "steer", "--trials", 2, "--budget", "1h", "-q")

    def row(column):
        return tap.rows(store, "SELECT %s FROM study" % column)[0][0]

    tap.wait_for(lambda: tap.running(store, "steer"), sweep)
    other = Server(store, "--control")
    button = lambda text: ".controls button[title^='%s']" % text
    PAUSE, CONTINUE, STOP, ADD = button("start no new"), button("start trials"), button("end the sweep"), button("raise the limit")
    chip = lambda state: "document.querySelector('h1 .chip').textContent === '%s'" % state
    b = go(path("", "steer"), chip("running"), other.origin)
    b.screenshot(SHOTS / "control-light.png", full=False)
    b.click(PAUSE)
    b.wait(chip("paused"))
    b.wait("document.querySelector('.said:not([hidden])')?.textContent.includes('steer')")
    equal(row("state"), "paused")
    clean()
    b.run("document.querySelector(%s).click()" % json.dumps(PAUSE))  # as if the page had not heard of it yet
    b.wait("document.querySelector('.said.warn')?.textContent.includes('paused')", "why it was refused")
    b.screenshot(SHOTS / "control-refused-light.png", full=False)
    b.problems()  # the browser itself logs the 409
    b.click(CONTINUE)
    b.wait(chip("running"))
    equal(row("state"), "running")
    b.run("(() => { const i = document.querySelector('.controls input'); i.value = 7; i.focus(); })()")
    b.click(ADD)
    b.wait("document.querySelector('.progress').textContent.includes('of 9 trials')")
    equal(row("trials_max"), 9)
    equal(b.run("document.querySelector('.controls input').value"), "7")  # the page has followed without taking it away
    b.run("(() => { document.querySelector('.controls input').value = 2; document.querySelector('.controls select').value = '3600'; })()")
    b.click(ADD)
    tap.wait_for(lambda: row("budget_s") == 3 * 3600)
    b.run("document.querySelector('.controls input[aria-label^=priority]').value = 3")
    b.click(button("its share of the devices"))
    tap.wait_for(lambda: row("priority") == 3)
    pictures("control")
    b.click(STOP)
    b.wait("document.querySelector('dialog[open]')")
    b.screenshot(SHOTS / "control-stop-light.png", full=False)
    b.key("Escape")
    b.wait("!document.querySelector('dialog')")
    equal(row("state"), "running")
    b.click(STOP)
    b.wait("document.querySelector('dialog[open]')")
    b.click("dialog button.danger")
    sweep.communicate(timeout=tap.PATIENCE_S)
    b.wait(chip("ended"))
    equal((row("state"), row("end_rule")), ("ended", "user"))
    assert b.run("document.querySelector(%s).disabled" % json.dumps(STOP))
    b.run("(() => { document.querySelector('.controls input').value = 3; document.querySelector('.controls select').value = 'trials'; })()")
    b.click(ADD)  # nobody is there to run them, and the page says so
    b.wait("document.querySelector('.said')?.textContent.includes('no controller runs it now') && document.querySelector('.said').textContent.includes('--resume steer')")
    clean()
    leave()
    other.end()
    other = Server(store)  # and without --control there is nothing to click
    go(path("", "steer"), chip("ended"), other.origin)
    equal(b.run("document.querySelector('.controls')"), None)
    clean()
    b.open("about:blank")
    other.end()


LIMITED = """
[sweep]
command = sh train.sh {argv}
trials = 20
devices = cpu
confirm = 0
objective = memory
[sweep.limit.memory]
max = 250
""" + tap.space("""
x: type = float; min = 0; max = 1
y: type = float; min = 0; max = 1
""")
LIMITED_TRAIN = """while [ $# -gt 1 ]; do case $1 in --x) x=$2 ;; --y) y=$2 ;; esac; shift 2; done
awk -v x=$x -v y=$y 'BEGIN { printf "TRAWL score=%.6f step=1 cost=%.6f memory=%.6f\\n", x + y, 1 + 5 * x, 100 * (1 + 3 * y) }'
"""


def test_limits_and_a_third_objective(folder):
    tap.write(folder, "train.sh", LIMITED_TRAIN)
    store = folder / "l.db"
    run("sweep", tap.write(folder, "l.ini", LIMITED), "--store", store, "--name", "l", "-q")
    known = tap.show(store, "l")["trials"]
    broken = [t["number"] for t in known if not t["feasible"]]
    front = {t["number"] for t in known if t["on_front"]}
    assert broken and len(front) > 3
    s = Server(store)
    b = go(path(name="l"), FRONT_STILL, s.origin)
    chart = "document.querySelector('.front-plot').chart"
    equal(set(b.run("%s.data.front" % chart)), front)
    equal(b.run("%s.data.infeasible" % chart), broken)
    legend = text(".legend")
    assert "infeasible (%d)" % len(broken) in legend and "larger: more memory" in legend, legend
    b.screenshot(SHOTS / "front-limits.png")
    assert "above the 250 of [sweep.limit.memory]" in b.run("%s.data.why(%d)" % (chart, broken[0]))
    heads = b.run("[...document.querySelectorAll('.tall th')].map((e) => e.textContent)")
    assert "memory" in heads, heads
    b.run("(() => { const s = document.querySelector('.tools select'); s.value = 'objective'; s.dispatchEvent(new Event('change')); })()")
    b.wait("new URLSearchParams(location.search).get('axis') === 'objective' && %s?.data.metric === 'memory'" % chart)
    least = min(known, key=lambda t: t["outcomes"]["memory"])
    equal(b.run("%s.data.score[%d]" % (chart, least["number"])), least["outcomes"]["memory"])
    lo, hi = b.run("%s.home.y" % chart)
    assert lo < least["outcomes"]["memory"] < hi, (lo, hi)
    b.screenshot(SHOTS / "front-third-axis.png")
    clean()
    leave()
    s.end()


def test_a_value_without_effect_is_a_dash(folder):
    """In both tables, also where what it depends on has no effect itself."""
    tap.write(folder, "train.sh", "echo TRAWL score=0.$TRAWL_SEED cost=$TRAWL_SEED\n")
    store = folder / "c.db"
    config = "[sweep]\ncommand = sh train.sh {argv}\ndevices = cpu\ntrials = 20\nmethod = random\n" + tap.space("""
opt: type = categorical; values = adam, sgd
momentum: type = float; min = 0.1; max = 0.9; when = opt == sgd
nesterov: type = bool; when = momentum > 0.5
""")
    run("sweep", tap.write(folder, "c.ini", config), "--store", store, "--name", "c", "-q")
    keys = ["param.opt", "param.momentum", "param.nesterov"]
    want = {}
    for t in tap.show(store, "c")["trials"]:
        opt, momentum, _ = (t["params"][k] for k in keys)
        want[t["number"]] = [False, opt != "sgd", opt != "sgd" or momentum <= 0.5]
    equal({tuple(w) for w in want.values()}, {(False, False, False), (False, False, True), (False, True, True)})
    s = Server(store)
    b = go(path(name="c"), FRONT_READY, s.origin)
    dashes = b.run("[...document.querySelectorAll('.tall tbody tr')].map((r) => [r.dataset.key, [...r.cells].slice(-3).map((c) => c.textContent === '–')])")
    assert dashes, "no row"
    equal({int(number): cells for number, cells in dashes}, {int(number): want[int(number)] for number, _ in dashes})
    data = "document.querySelector('.front-plot').chart.data"
    equal(b.run("[...Array(20).keys()].map((i) => %s.params.map((p) => %s.paramText(p.key, i) === '–'))" % (data, data)), [want[i] for i in range(20)])
    clean()
    leave()
    s.end()


def test_a_store_that_goes_away_is_told(folder):
    store = folder / "away.db"
    shutil.copy(recorded(), store)
    other = Server(store)
    b = go("/", "document.querySelectorAll('.studies tbody tr').length === 2", other.origin)
    b.wait("document.querySelector('#live').textContent === 'live'")
    assert b.run("document.querySelector('#gone').hidden")
    store.rename(folder / "elsewhere.db")
    b.wait("document.querySelector('#gone').innerText.includes('there is no store at')", "the page says so")
    equal(b.run("document.querySelectorAll('.studies tbody tr').length"), 2)  # what was read stays
    go(path(), FRONT_READY, other.origin)  # another page says it too
    b.wait("document.querySelector('#gone').innerText.includes('there is no store at')")
    (folder / "elsewhere.db").rename(store)
    b.wait("document.querySelector('#gone').hidden", "it is back")
    clean()
    leave()
    other.end()


LOOKS = (("light", 1440, 1000, "light"), ("dark", 1440, 1000, "dark"), ("tablet", 1024, 800, "light"), ("phone", 390, 844, "light"), ("phone-dark", 390, 844, "dark"))


def pictures(name):
    b = page()
    for look, width, height, scheme in LOOKS:
        b.resize(width, height, look.startswith("phone"))
        b.scheme(scheme)
        time.sleep(0.3)
        wide = b.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, "%s on %s is %d pixels wider than the window" % (name, look, wide)
        b.screenshot(SHOTS / ("%s-%s.png" % (name, look)))
    b.resize(1400, 1000)
    b.scheme("light")


def test_the_token_is_asked_for_and_the_address_kept(_):
    other, b = Server(recorded(), token=True), page()
    token = other.token
    deep = path("/trial/990?against=3")
    b.open(other.origin + deep)
    b.wait("document.querySelector('main form')")
    b.wait("document.activeElement.id === 'token'")
    pictures("login")
    b.type("wrong")
    b.key("Enter", "\r")
    b.wait("document.querySelector('[role=alert]')?.innerText.includes('not the token')")
    b.screenshot(SHOTS / "login-wrong-light.png")
    b.run("document.querySelector('#token').focus()")
    b.type(token)
    b.key("Enter", "\r")
    b.wait("location.pathname + location.search === %s && document.querySelector('.config')" % json.dumps(deep))
    b.wait("document.querySelector('#live').textContent === 'live'")  # the stream has the cookie, too
    b.problems()  # the browser itself logs each 401
    b.open(other.origin + "/nothing/here")
    b.wait("document.querySelector('h1')?.innerText === 'Not found'")
    pictures("not-found")
    b.problems()
    b.requests.clear()
    leave()
    other.end()


def test_pages_that_were_left_hold_no_stream(_):
    """Browsers keep such pages for their Back button, and open six connections to a server: a seventh page would wait for a minute."""
    for number in range(900, 909):
        page().send("Page.navigate", {"url": server().origin + path("/trial/%d" % number)}, timeout_s=30)
        page().wait("document.querySelector('.config') && document.querySelector('#live').textContent === 'live'", "trial %d" % number)
    page().run("history.back()")
    page().wait("location.pathname.endsWith('/907') && document.querySelector('.config') && document.querySelector('#live').textContent === 'live'",
                "the page before, live again")
    clean()


before_each = leave  # late requests and console output of a page belong to the test that opened it
