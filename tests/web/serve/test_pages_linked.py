"""One selection over all views of a study, and what stands beside it, in a real browser: the map of two parameters, what comes next. Then
what a reader without eyes, a mouse or colours needs of every page."""

import json
import re
import urllib.parse

import test_pages as pages  # ends here where there is no browser
from tap import equal
from test_pages import FRONT_STILL, STUDY, TABLE_READY, TRIALS, VIEWS, before_each, clean, go, page, path, point, text, tip, trials, trials_column


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


def test_all_views_on_one_page(_):
    """What is dragged over the front holds in table, parallel coordinates, curves, slices and map beside it, and what is dragged along an
    axis of the parallel coordinates holds on the front."""
    b = go(*VIEWS["all"])
    b.run("window.scrollTo(0, 0)")
    x, y, w, h = b.box(".front-plot")
    b.drag(x + 0.35 * w, y + 0.2 * h, x + 0.7 * w, y + 0.8 * h)
    b.wait("new URLSearchParams(location.search).get('f')?.startsWith('cost:')")
    low, high = (float(v) for v in re.match(r"cost:([^:;]*):([^:;]*)", b.run("new URLSearchParams(location.search).get('f')")).groups())
    n = b.run("document.querySelector('.front-plot').chart.mask.reduce((a, v) => a + v, 0)")
    assert 0 < n < TRIALS
    b.wait("Number(document.querySelector('.grid').getAttribute('aria-rowcount')) === %d" % (n + 1))
    b.wait("document.querySelector('#all-curves [role=status]').textContent.includes(' of ') && Number(document.querySelector('#all-curves [role=status]').textContent.match(/of (\\d+)/)[1]) <= %d" % n)
    assert b.run("[...document.querySelectorAll('.parallel [role=slider]')].length > 0")
    costs = [float(trials_column("cost_s", k)) for k in b.run("[...document.querySelectorAll('.grid-row')].map((r) => Number(r.textContent.match(/#(\\d+)/)[1]))")]
    assert costs and all(low <= c <= high for c in costs), (low, high, costs)
    place = b.run("document.querySelector('.selection-place').getBoundingClientRect().top")
    b.run("document.querySelector('#contour').scrollIntoView()")
    assert 0 <= b.run("document.querySelector('.selection-place').getBoundingClientRect().top") < max(place, 60)  # it stays in sight
    b.run("[...document.querySelectorAll('.selection-bar button')].find((e) => e.textContent === 'Clear').click()")
    b.wait("!document.querySelector('.front-plot').chart.mask && Number(document.querySelector('.grid').getAttribute('aria-rowcount')) === %d" % (TRIALS + 1))
    b.run("document.querySelector('.parallel [role=slider]').focus()")
    b.key("ArrowUp")
    b.wait("document.querySelector('.front-plot').chart.mask && document.querySelector('.filter-chip')", "a range by keys of the parallel coordinates holds on the front")
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


# What axe 4 tests of these pages, as far as it found something once or a page could lack it; axe itself is not a package of the distribution.
LACKS = r"""(() => {
  const found = [], say = (rule, el) => found.push(rule + ': ' + el.outerHTML.slice(0, 120)), shown = (el) => el.getClientRects().length > 0 && getComputedStyle(el).visibility !== 'hidden';
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const labelled = (el) => (el.getAttribute('aria-labelledby') || '').split(/\s+/).map((id) => document.getElementById(id)?.textContent || '').join('') || el.getAttribute('aria-label') || '';
  const name = (el) => (labelled(el) || [...(el.labels || [])].map((l) => l.textContent).join('') || el.textContent || el.getAttribute('title') || el.querySelector('img[alt]')?.alt || '').trim();
  if (!document.documentElement.lang) found.push('html-has-lang');
  if (document.querySelectorAll('main').length !== 1) found.push('landmark-one-main');
  if (all('h1').length !== 1) found.push('page-has-heading-one');
  let level = 0;
  for (const h of all('h1,h2,h3,h4')) { const now = Number(h.localName[1]); if (level && now > level + 1) say('heading-order', h); level = now; if (!h.textContent.trim()) say('empty-heading', h); }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids.filter((id, k) => ids.indexOf(id) !== k))) found.push('duplicate-id: ' + id);
  for (const el of all('button, a[href], summary')) if (!name(el)) say('button-name or link-name', el);
  for (const el of all('input:not([type=hidden]), select, textarea')) if (!labelled(el) && ![...(el.labels || [])].some((l) => l.textContent.trim()) && !el.title) say('label', el);
  for (const el of all('[role=img], img, svg:not([aria-hidden])')) if (!labelled(el) && el.getAttribute('alt') === null && el.localName !== 'svg') say('role-img-alt', el);
  for (const el of all('[role=slider]')) if (!el.hasAttribute('aria-valuenow') || !labelled(el)) say('aria-required-attr', el);
  for (const el of all('[role=row]')) if ([...el.children].some((c) => !['gridcell', 'columnheader', 'rowheader'].includes(c.getAttribute('role')))) say('aria-required-children', el);
  for (const el of all('[role=gridcell], [role=columnheader]')) if (!el.closest('[role=row]')) say('aria-required-parent', el);
  for (const el of all('[aria-hidden=true]')) if (el.querySelector('a[href], button, input, select, [tabindex="0"]') || el.matches('a[href], button')) say('aria-hidden-focus', el);
  for (const el of all('[tabindex]')) if (Number(el.getAttribute('tabindex')) > 0) say('tabindex', el);
  for (const el of all('dl > *')) if (!['DT', 'DD', 'DIV'].includes(el.tagName)) say('definition-list', el);
  for (const el of all('ul > *, ol > *')) if (el.tagName !== 'LI') say('list', el);
  for (const el of all('main *')) if (el.scrollHeight > el.clientHeight + 2 && /auto|scroll/.test(getComputedStyle(el).overflowY) && el.clientHeight > 0 && el.tabIndex < 0 && !el.querySelector('a[href], button, input, [tabindex="0"]')) say('scrollable-region-focusable', el);
  for (const el of all('main *')) if (el.scrollWidth > el.clientWidth + 2 && /auto|scroll/.test(getComputedStyle(el).overflowX) && el.clientWidth > 0 && el.tabIndex < 0 && !el.querySelector('a[href], button, input, [tabindex="0"]')) say('scrollable-region-focusable', el);
  if (!document.title.trim()) found.push('document-title');
  if (/user-scalable\s*=\s*no|maximum-scale\s*=\s*[01](\.|,|$)/.test(document.querySelector('meta[name=viewport]')?.content || '')) found.push('meta-viewport');
  for (const el of document.querySelectorAll('a.skip')) if (!document.querySelector(el.getAttribute('href'))) say('skip-link', el);
  const roles = 'alert alertdialog application article banner button cell checkbox columnheader combobox complementary contentinfo definition dialog document feed figure form grid gridcell group heading img link list listbox listitem log main marquee math menu menubar menuitem meter navigation none note option presentation progressbar radio radiogroup region row rowgroup rowheader search searchbox separator slider spinbutton status switch tab table tablist tabpanel term textbox timer toolbar tooltip tree treegrid treeitem'.split(' ');
  for (const el of document.querySelectorAll('[role]')) if (!roles.includes(el.getAttribute('role')) && !el.getAttribute('role').startsWith('graphics-')) say('aria-roles', el);
  const known = 'activedescendant atomic autocomplete busy checked colcount colindex colspan controls current describedby description details disabled dropeffect errormessage expanded flowto grabbed haspopup hidden invalid keyshortcuts label labelledby level live modal multiline multiselectable orientation owns placeholder posinset pressed readonly relevant required roledescription rowcount rowindex rowspan selected setsize sort valuemax valuemin valuenow valuetext'.split(' ');
  const values = {current: 'page step location date time true false', sort: 'ascending descending none other', pressed: 'true false mixed', expanded: 'true false', checked: 'true false mixed', selected: 'true false', hidden: 'true false', busy: 'true false', live: 'polite assertive off', orientation: 'horizontal vertical', disabled: 'true false', modal: 'true false'};
  for (const el of document.querySelectorAll('body *')) for (const {name: attribute, value} of el.attributes) {
    if (!attribute.startsWith('aria-')) continue;
    const key = attribute.slice(5);
    if (!known.includes(key)) say('aria-valid-attr', el);
    if ((values[key] && !values[key].split(' ').includes(value)) || (/^(valuenow|valuemin|valuemax|rowcount|rowindex|colcount|colindex|level)$/.test(key) && !Number.isFinite(parseFloat(value)))) say('aria-valid-attr-value', el);
    if (/^(labelledby|describedby|controls|activedescendant|owns)$/.test(key) && value.trim().split(/\s+/).some((id) => !document.getElementById(id))) say('aria-valid-attr-value', el);
    if (/^label(ledby)?$/.test(key) && ['DIV', 'SPAN', 'P', 'I', 'B', 'STRONG', 'EM', 'CODE'].includes(el.tagName) && !el.hasAttribute('role')) say('aria-allowed-attr', el);
    if (key === 'sort' && !['columnheader', 'rowheader'].includes(el.getAttribute('role')) && el.tagName !== 'TH') say('aria-allowed-attr', el);
  }
  for (const el of all('button, a[href], summary, [role=button], [role=slider], [role=checkbox], [role=option], [role=img], [role=progressbar]')) if (el.querySelector('a[href], button, input, select, textarea, [tabindex]:not([tabindex="-1"])')) say('nested-interactive', el);
  const marks = all('nav, [role=navigation], header, main, aside, footer, section[aria-label]').map((el) => `${el.localName} ${labelled(el)}`);
  for (const mark of new Set(marks.filter((m, k) => marks.indexOf(m) !== k && !m.startsWith('section')))) found.push('landmark-unique: ' + mark);
  for (const el of all('body *')) if ([...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && !el.closest('main, header, nav, footer, aside, dialog, .skip, [role=dialog], [role=status], [role=alert], script, style')) say('region', el);
  for (const el of all('li')) if (!el.parentElement.matches('ul, ol, menu')) say('listitem', el);
  for (const el of all('dt, dd')) if (!el.parentElement.matches('dl, dl > div')) say('dlitem', el);
  for (const el of all('th')) { if (!el.textContent.trim() && !labelled(el)) say('empty-table-header', el); if (el.hasAttribute('scope') && !['col', 'row', 'colgroup', 'rowgroup'].includes(el.getAttribute('scope'))) say('scope-attr-valid', el); }
  for (const el of all('table')) if (!el.querySelector('td')) say('th-has-data-cells', el);
  for (const el of all('input:not([type=hidden]), select, textarea')) { if ((el.labels?.length || 0) > 1) say('form-field-multiple-labels', el); if (el.title && !labelled(el) && ![...(el.labels || [])].some((l) => l.textContent.trim())) say('label-title-only', el); }
  /* contrast of text of its own against the nearest ground */
  const rgb = (text) => { const m = text.match(/[\d.]+/g).map(Number); return [m[0], m[1], m[2], m[3] ?? 1]; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const ground = (el) => { for (let at = el; at; at = at.parentElement) { const c = rgb(getComputedStyle(at).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255]; };
  for (const el of all('body *')) {
    if (![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || el.closest(':disabled, .sr, [aria-hidden=true], option, .skip')) continue;
    const style = getComputedStyle(el), c = rgb(style.color), g = ground(el), size = parseFloat(style.fontSize);
    if (size === 0 || !style.color.startsWith('rgb')) continue;
    const [a, b] = [light(c), light(g)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (size >= 24 || (size >= 18.6 && style.fontWeight >= 700) ? 3 : 4.5)) say('color-contrast ' + ratio.toFixed(2), el);
  }
  return [...new Set(found)];
})()"""


def test_pages_lack_nothing_for_any_reader(_):
    b = page()
    found = {}
    for name, (address, ready) in VIEWS.items():
        for scheme, width, phone in (("light", 1400, False), ("dark", 1400, False), ("light", 390, True)):
            b.resize(width, 900, phone)
            b.scheme(scheme)
            go(address, ready)
            for lack in b.run(LACKS):
                found.setdefault(lack, []).append("%s %s %d" % (name, scheme, width))
    b.resize(1400, 1000)
    b.scheme("light")
    equal(found, {})
    # the test itself finds what is wrong
    b.run("document.querySelector('main').append(Object.assign(document.createElement('input'), {type: 'text'}), Object.assign(document.createElement('p'), {textContent: 'faint', style: 'color: #bbb'}))")
    b.run("document.querySelector('main').insertAdjacentHTML('beforeend', `<div role='knob'>a</div><div aria-lable='x'>a</div><p aria-label='x'>a</p><div role='group' aria-labelledby='nowhere'>a</div>"
          "<a href='#x'>a <button>b</button></a><nav aria-label='views of this study'>a</nav><nav aria-label='views of this study'>a</nav><li>a</li><dt>a</dt><table><tr><th></th><th scope='here'>a</th></tr></table>"
          "<input title='only this'>`); document.body.append(Object.assign(document.createElement('p'), {textContent: 'outside'}))")
    now = {f.split(":")[0].split(" ")[0] for f in b.run(LACKS)}
    assert now >= {"label-title-only", "label", "color-contrast", "aria-roles", "aria-valid-attr", "aria-allowed-attr", "aria-valid-attr-value", "nested-interactive", "landmark-unique", "listitem", "dlitem",
                   "empty-table-header", "scope-attr-valid", "th-has-data-cells", "region"}, now
    pages.leave()


# A label is cut where its box ends within it: nothing of a page runs out of the window or of its card.
CUT = r"""(() => {
  const found = [], w = document.documentElement.clientWidth;
  for (const el of document.querySelectorAll('main *')) {
    if (!el.getClientRects().length || el.closest('.scroll, .grid, .parallel, pre, .log, details, .sr, [hidden], .tabs, option')) continue;
    const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()), style = getComputedStyle(el), r = el.getBoundingClientRect();
    if (!own) continue;
    if (r.right > w + 1 || r.left < -1) found.push('outside: ' + el.outerHTML.slice(0, 100));
    if (el.scrollWidth > el.clientWidth + 1 && el.clientWidth > 0 && style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis') found.push('cut: ' + el.outerHTML.slice(0, 100));
  }
  for (const c of document.querySelectorAll('canvas')) if (c.getClientRects().length && !c.closest('.scroll, .parallel')) { const r = c.getBoundingClientRect(); if (r.right > w + 1 || r.left < -1) found.push('chart outside: ' + (c.parentElement.getAttribute('aria-label') || c.className).slice(0, 80)); }
  for (const box of document.querySelectorAll('main input')) for (const a of document.querySelectorAll('main table a')) {
    const p = box.getBoundingClientRect(), seen = a.closest('.tall')?.getBoundingClientRect() ?? {top: -Infinity, bottom: Infinity}; /* what a table that scrolls hides covers nothing */
    for (const q of a.getClientRects()) if (q.top < seen.bottom && q.bottom > seen.top && p.width && p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1) found.push('covered by an input: ' + a.outerHTML.slice(0, 100));
  }
  return [...new Set(found)];
})()"""


def test_no_label_is_cut_at_an_edge(_):
    b = page()
    found = {}
    for name, (address, ready) in VIEWS.items():
        for width, phone in ((1440, False), (1024, False), (390, True)):
            b.resize(width, 900, phone)
            go(address, ready)
            for cut in b.run(CUT):
                found.setdefault(cut, []).append("%s %d" % (name, width))
    b.resize(1400, 1000)
    equal(found, {})
    clean()
    b.run("document.querySelector('main').append(Object.assign(document.createElement('p'), {textContent: 'a label that is cut', style: 'width: 40px; overflow: hidden; white-space: nowrap'}))")
    assert any(f.startswith("cut") for f in b.run(CUT))
    pages.leave()
