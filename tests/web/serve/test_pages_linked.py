"""One selection over all views of a study, and what stands beside it, in a real browser: the map of two parameters, what comes next. Then
what a reader without eyes, a mouse or colours needs of every page."""

import json
import re
import sys
import urllib.parse

import test_pages as pages  # ends here where there is no browser
import tap
from tap import equal
from test_pages import FRONT_STILL, STUDY, TABLE_READY, TRIALS, VIEWS, clean, go, path, point, text, tip, trials, trials_column


def test_one_selection_links_all_views(_):
    """What a range, words and a colour choose holds on every tab, after a reload, and goes by one click."""
    address = path("?" + urllib.parse.urlencode({"f": "cost:5:20;train.gamma:0.97:", "colour": "train.learning_rate"}))
    n = len(trials("cost_s BETWEEN 5 AND 20 AND json_extract(params, '$.\"train.gamma\"') >= 0.97"))
    assert 0 < n < TRIALS
    count = "Number(document.querySelector('.selection-bar [role=status]')?.textContent.split(' of ')[0].replace('\u202f', '')) === %d"
    b = go(address, FRONT_STILL + " && " + count % n)
    inside = "(() => { const c = document.querySelector('.front-plot').chart; return c.mask.reduce((a, v) => a + v, 0) === %d && c.colour.colours.length > 4; })()" % n
    assert b.run(inside)
    for tab, ready in (("Parameters", VIEWS["parameters"][1]), ("Trials", TABLE_READY), ("Curves", VIEWS["curves"][1]), ("Front", FRONT_STILL)):
        b.run("[...document.querySelectorAll('.tabs a')].find((a) => a.textContent === '%s').click()" % tab)
        b.wait(ready + " && " + count % n, tab)
        assert b.run("document.querySelector('.colour-by select').value") == "train.learning_rate"
        assert b.run("!!document.querySelector('.ramp')"), tab
        if tab == "Trials":
            equal(int(b.run("document.querySelector('.grid').getAttribute('aria-rowcount')")), n + 1)
            assert b.run("!!document.querySelector('.grid-row .swatch')")
            best = json.loads(trials_column("params", int(b.run("document.querySelector('.grid-row').textContent.match(/#(\\d+)/)[1]"))))
            assert best["train.gamma"] >= 0.97
        if tab == "Curves":
            said = re.match(r"(\d+) of (\d+) trials", text("#all-curves [role=status]"))
            assert said and int(said.group(2)) == n, text("#all-curves")
    b.click(".filter-chip[data-key='train.gamma'] button")
    b.wait(count % len(trials("cost_s BETWEEN 5 AND 20")))
    assert "gamma" not in b.run("new URLSearchParams(location.search).get('f')")
    b.run("[...document.querySelectorAll('.selection-bar button')].find((e) => e.textContent === 'Clear').click()")
    b.wait("!new URLSearchParams(location.search).get('f') && !document.querySelector('.front-plot').chart.mask")
    clean()


def test_two_parameters_and_what_comes_next(_):
    b = go(path("?tab=params&x=train.learning_rate&y=train.gamma"), VIEWS["parameters"][1])
    answer = b.run("fetch('/api/v1/studies/%s/model/contour?x=train.learning_rate&y=train.gamma').then((r) => r.json())" % STUDY)
    nx, ny = len(answer["x"]["values"]), len(answer["y"]["values"])
    assert nx > 10 and ny > 10
    for key in ("score", "score_lo", "score_hi", "cost"):
        equal(len(answer[key]), nx * ny)
    # a slice along one of the two goes through the same numbers
    line = b.run("fetch('/api/v1/studies/%s/model/slice?param=train.learning_rate').then((r) => r.json())" % STUDY)
    equal(line["at"], answer["at"])
    y0 = min(range(ny), key=lambda j: abs(answer["y"]["values"][j] - answer["y"]["value"]))
    for i, x in enumerate(answer["x"]["values"]):
        near = min(line["points"], key=lambda p: abs(p["value"] - x))
        assert abs(near["value"] / x - 1) < 1e-9 and abs(near["score"] - answer["score"][y0 * nx + i]) < 0.1, (near, answer["score"][y0 * nx + i])
    point("#contour .contour-plot", 0.5, 0.4)
    assert re.search(r"learning_rate|Trial \d+", tip()), tip()
    steps = b.run("fetch('/api/v1/studies/%s/model/next').then((r) => r.json())" % STUDY)["points"]
    equal(len(steps), 3)
    equal(b.run("document.querySelectorAll('.proposals > li').length"), 3)
    space = b.run("fetch('/api/v1/studies/%s').then((r) => r.json())" % STUDY)["space"]["params"]
    for step in steps:
        assert step["why"] and step["score_lo"] <= step["score"] <= step["score_hi"] and step["cost"] > 0
        for p in space:
            assert "choices" in p or p["min"] <= step["params"][p["key"]] <= p["max"], (p, step)
    assert b.run("[...document.querySelectorAll('#contour select')].map((e) => e.value)") == ["train.learning_rate", "train.gamma"]
    clean()


if __name__ == "__main__":
    for name_, function_ in list(globals().items()):
        if name_.startswith("test_") and callable(function_):
            globals()[name_] = pages.fresh(function_)
    tap.main(sys.modules[__name__])
