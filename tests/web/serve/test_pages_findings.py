"""What the pages conclude, in a real browser: the briefing at the top of a study, fresh seeds by one click, what runs now, the list of
studies, several studies side by side. The numbers are those of the command line."""

import json
import re
import shutil
import urllib.parse

import test_pages as pages  # ends here where there is no browser
import tap
from serve_client import Server
from tap import change, equal, run
from test_pages import SHOTS, before_each, clean, go, leave, path, text

SEEDED = tap.TINY_SWEEP.replace("method = sobol", "method = sobol\nconfirm = 0")


def swept(folder, name="s", trials=12, seed=1):
    config = tap.write(folder, "%s.ini" % name, SEEDED.replace("[sweep]\n", "[sweep]\nseed = %d\n" % seed))
    run("sweep", config, "--store", folder / "s.db", "--name", name, "--trials", trials, "-q")
    return folder / "s.db"


BRIEFING = "document.querySelector('.briefing:not([hidden]) .part.take')"


def test_the_briefing_is_what_show_prints(folder):
    store = swept(folder)
    other = Server(store)
    b = go(path("", "s"), BRIEFING + " && document.querySelector('.pick-result .params')", other.origin)
    lines = run("show", "s", "--store", store)[0].splitlines()
    take = next(line for line in lines if line.startswith("Take trial"))
    equal(re.sub(r"\s+", " ", text(".part.take p")), re.sub(r"\s+", " ", take))
    command = text(".part.take .command code")
    equal((command.startswith("trawl export s --store "), str(store) in command, "--pick best" in command), (True, True, True))
    assert "the study has its 12 trials" in text(".part.next").lower() or "12 trials" in text(".part.next"), text(".part.next")
    best = tap.show(store, "s")["study"]["best"]
    named = b.run("""Promise.all(['', '/front', '/pick?rule=best', '/briefing'].map((tail) => fetch('/api/v1/studies/s' + tail).then((r) => r.json())))
        .then(([s, f, p, b]) => [s.best_trial, f.best_trial, p.trial, b.take.trial])""")
    shown = [int(re.search(r"trial (\d+)", text(s)).group(1)) for s in (".part.take p", ".tiles .tile span")]
    listed = [row["best_trial"] for row in json.loads(run("ls", "--store", store, "--json")[0])]
    exported = json.loads(run("export", "s", "--store", store, "--format", "json", "--pick", "best")[0])["trial"]
    equal(named + shown + listed + [exported], [best] * 8)  # one best everywhere
    equal(b.run("!!document.querySelector('.part.gained')"), False)  # the first visit
    b.run("localStorage.setItem('visit %s s', JSON.stringify({seen_ms: Date.now() - 3600e3}))" % store)
    go(path("", "s"), "document.querySelector('.part.gained')", other.origin)
    assert text(".part.gained").startswith("Since your last visit") and "12 trials have a result" in text(".part.gained"), text(".part.gained")
    leave()
    go(path("", "s"), "document.querySelector('.part.gained')", other.origin)  # a look again a moment later is the same visit
    b.screenshot(SHOTS / "briefing-light.png", full=False)
    clean()
    leave()
    other.end()


def test_failures_come_with_the_bound_behind_them(folder):
    store = folder / "night.db"
    shutil.copy(pages.recorded(), store)
    large = "json_extract(params, '$.\"policy.hidden_size\"') >= 32 AND study_id = (SELECT id FROM study WHERE name = '%s')" % pages.STUDY
    n, = tap.rows(store, "SELECT count(*) FROM trial WHERE state IN ('done', 'stopped', 'failed') AND " + large)[0]
    change(store, "UPDATE trial SET checksum = NULL, state = 'failed', score = NULL, perf = NULL, reason = 'out of memory: ' || number || ' MB' WHERE " + large)
    other = Server(store)
    b = go(path(), BRIEFING + " && document.querySelector('.part.failed .rule')", other.origin)
    equal(text(".part.failed .rule"), "policy.hidden_size >= 32 failed %d of %d" % (n, n))
    assert "out of memory" in text(".part.failed p") and str(n) in text(".part.failed p"), text(".part.failed")  # one reason, whatever its numbers
    equal(text(".part.failed pre").splitlines(), ["# policy.hidden_size >= 32 failed %d of %d" % (n, n), "[sweep.policy.hidden_size]", "max = 16"])
    ini = tap.write(folder, "avoid.ini", text(".part.failed pre") + "\n")
    base = tap.write(folder, "base.ini", tap.TINY_SWEEP.replace("max = 16\n", "max = 64\n"))
    run("sweep", base, ini, "--store", folder / "next.db", "--name", "next", "--trials", 6, "-q")  # the lines are a config as they stand
    assert max(t["params"]["policy.hidden_size"] for t in tap.show(folder / "next.db", "next")["trials"]) <= 16
    b.screenshot(SHOTS / "briefing-failures-light.png", full=False)
    clean()
    leave()
    other.end()


def test_was_it_luck_by_one_click(folder):
    store = swept(folder)
    other = Server(store, "--control")
    b = go(path("", "s"), BRIEFING, other.origin)
    best = tap.show(store, "s")["study"]["best"]
    b.click(".part.take button[title^='queues the config']")
    b.wait("document.querySelector('.said:not([hidden])')?.textContent.includes('trial %d of s is queued under 5 fresh seeds')" % best)
    clean()
    leave()
    go(path("/trial/%d" % best, "s"), "document.querySelector('#luck')?.innerText.includes('5 more runs are queued')", other.origin)
    run("sweep", "--resume", "s", "--store", store, "-q")
    b.wait("document.querySelectorAll('#luck circle').length === 6", "the fresh runs are there")
    scores = sorted(t["score"] for t in tap.show(store, "s")["trials"] if t["params"] == tap.show(store, "s")["trials"][best]["params"])
    equal(len(scores), 6)
    middle = (0.5 * scores[1] + scores[2] + scores[3] + 0.5 * scores[4]) / 3
    shown = b.run("[...document.querySelectorAll('#luck dd')].map((e) => parseFloat(e.textContent))")
    assert abs(shown[0] - sum(scores) / 6) < 2e-3 * abs(shown[0]) + 1e-4 and abs(shown[1] - middle) < 2e-3 * abs(middle) + 1e-4, (shown, scores)
    b.screenshot(SHOTS / "luck-light.png", full=False)
    go(path("?tab=progress", "s"), "document.querySelector('#calibration canvas')", other.origin)
    b.wait("/^[0-5] of 5 fresh runs lie in the 95 % interval/.test(document.querySelector('#calibration p').textContent)")
    b.screenshot(SHOTS / "calibration-light.png")
    go(path("?tab=trials", "s"), "document.querySelector('.grid-row')", other.origin)
    b.wait("[...document.querySelectorAll('.grid-row')].some((r) => r.children[4].textContent === '6')", "six seeds of one config in the table")
    clean()
    leave()
    other.end()
    change(store, "UPDATE trial SET checksum = NULL, score = number % 2, perf = number % 2 WHERE origin = 'confirm'")
    other = Server(store)
    fresh = other.wait("/api/v1/studies/s/trials/%d/seeds" % best)["fresh"]
    equal((fresh["n"], fresh["mean_lo"], fresh["mean_hi"]), (5, 0, 1))  # Student's t goes beyond what perf can be
    other.end()


def test_what_runs_now_and_what_was_cut_off(folder):
    store, config = folder / "now.db", tap.write(folder, "now.ini", tap.TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 2G"))
    sweep = tap.start("sweep", config, "--store", store, "--name", "now", "--trials", 3, "-q")
    slot = tap.wait_for(lambda: tap.running(store, "now"), sweep)[0]["slot"]
    other = Server(store)
    b = go(path("?tab=progress", "now"), "document.querySelector('#lanes:not([hidden]) tbody tr')", other.origin)
    equal(b.run("document.querySelector('#lanes tbody td').textContent"), slot)
    b.wait("document.querySelector('#lanes .spark polyline')", "a live curve")
    b.wait("document.querySelector('.progress-line').textContent.includes('1 running')")
    b.screenshot(SHOTS / "lanes-light.png", full=False)
    sweep.kill()
    sweep.communicate()
    go(path("?tab=progress", "now"), "document.querySelector('h1 .chip').textContent === 'interrupted'", other.origin)
    b.wait("document.querySelector('#lanes:not([hidden])')?.innerText.includes('they were cut off')")
    b.wait("document.querySelector('.progress-line').textContent.includes('1 cut off')")
    clean()
    leave()
    other.end()


NAMES = "[...document.querySelectorAll('.studies tbody tr')].map((tr) => tr.dataset.study).join()"


def test_the_list_of_studies_is_searched_and_sorted(folder):
    store = swept(folder, "alpha", 4)
    swept(folder, "beta", 6)
    swept(folder, "gamma", 5)
    run("tag", "beta", "paper", "--store", store)
    other = Server(store)
    b = go("/", "document.querySelectorAll('.studies tbody tr').length === 3", other.origin)
    b.click(".studies button[data-key='name']")
    b.wait(NAMES + " === 'alpha,beta,gamma'")
    b.click(".studies button[data-key='progress']")
    b.wait(NAMES + " === 'beta,gamma,alpha'")
    equal(b.run("document.activeElement.dataset.key"), "progress")  # for the keyboard
    b.click(".actions input[type='search']")
    b.type("paper")
    b.wait(NAMES + " === 'beta'")
    state = urllib.parse.parse_qs(b.run("location.search.slice(1)"))
    equal((state["q"], state["sort"]), (["paper"], ["-progress"]))
    go("/?q=amm&sort=name", NAMES + " === 'gamma'", other.origin)
    listed = {row["name"]: row["now"] for row in json.loads(run("ls", "--store", store, "--json")[0])}
    equal(b.run("document.querySelector('.studies .chip').textContent"), listed["gamma"])  # one name for a state
    for width in (1440, 1024):
        b.resize(width, 900)
        go("/", "document.querySelectorAll('.studies tbody tr').length === 3", other.origin)
        equal(b.run("(() => { const s = document.querySelector('.scroll'); return s.scrollWidth - s.clientWidth; })()"), 0)  # no column outside
    b.resize(1400, 1000)
    clean()
    leave()
    other.end()


def test_studies_side_by_side(folder):
    store = swept(folder, "one", 8, 1)
    swept(folder, "two", 8, 2)
    swept(folder, "three", 8, 3)
    config = tap.write(folder, "wide.ini", SEEDED.replace("max = 16\n", "max = 32\n"))
    run("sweep", config, "--store", store, "--name", "wide", "--trials", 8, "-q")
    other = Server(store)
    address = "/compare?" + urllib.parse.urlencode({"studies": "one,two,three,wide,gone"})
    b = go(address, "document.querySelector('.chart canvas') && document.querySelectorAll('.card tbody tr').length > 4", other.origin)
    answer = b.run("fetch('/api/v1/compare?studies=' + encodeURIComponent(JSON.stringify(['one', 'two', 'three', 'wide']))).then((r) => r.json())")
    equal([s["group"] for s in answer["studies"]], ["one", "one", "one", "wide"])
    assert all(row["by_quarter"] >= row["by_half"] for row in answer["attained"] if row["by_half"] is not None)
    rows = b.run("[...document.querySelector('table').querySelectorAll('tbody tr')].map((tr) => tr.children[2].textContent)")
    for shown, s in zip(rows, answer["studies"]):
        assert abs(float(shown) - s["hypervolume"]) <= 1e-3 * abs(s["hypervolume"]), (shown, s)
    rows = {row["key"]: row["values"] for row in answer["differences"]}
    equal(rows["sweep.policy.hidden_size"], ["4 to 16"] * 3 + ["4 to 32"])
    equal(rows["sweep.seed"][:3], ["1", "2", "3"])
    assert "no study 'gone'" in text("main"), "one bad entry does not empty the page"
    b.screenshot(SHOTS / "compare-studies-light.png")
    b.problems()  # the browser itself logs the 404
    clean()
    leave()
    other.end()


def test_a_run_and_its_branches_are_a_line(folder):
    config = tap.write(folder, "b.ini", SEEDED.replace("[sweep]\n", "[sweep]\nbranches = 2\n").replace("device = cpu", "device = cpu\ndecay_steps = 500") +
                       "[sweep.train.total_timesteps]\nmin = 512\nmax = 16384\n")
    run("sweep", config, "--store", folder / "s.db", "--name", "b", "--trials", 3, "-q")
    other = Server(folder / "s.db")
    b = go(path("", "b"), "document.querySelector('.front-plot')", other.origin)
    trials = tap.show(folder / "s.db", "b")["trials"]
    of = {}
    for t in trials:
        if t["origin"].startswith("branch "):
            of.setdefault(int(t["origin"].split()[1]), []).append(t["number"])
    assert len(of) >= 2, trials
    lines = b.run("document.querySelector('.front-plot').chart.data.runs()")
    equal(sorted(sorted(line) for line in lines), sorted(sorted([number, *branches]) for number, branches in of.items()))
    costs = {t["number"]: t["cost_s"] for t in trials}
    assert all(costs[a] <= costs[b] for line in lines for a, b in zip(line, line[1:])), (lines, costs)
    assert "one run and its branches" in text(".legend")
    clean()
