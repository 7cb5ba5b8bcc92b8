/* study_trials.js - all trials: parallel coordinates whose ranges select, and the table of the selected trials. */
import {card, empty, fill, h, download} from '../dom.js';
import {go, setState, state, trialUrl} from '../address.js';
import {Parallel} from '../charts/parallel.js';
import {Table} from './table.js';
import * as fmt from '../format.js';

const REST_MS = 120;
const STATES = ['done', 'running', 'queued', 'stopped', 'failed', 'lost'];

/* swatch(i): the colour of a trial, or null */
function allColumns(data, swatch) {
  const c = data.column, believed = (i) => c.expected[i] !== null && c.state[i] !== 'failed', number = (key, width, label, show) => ({key, label, width, cell: show});
  return [
    {key: 'number', label: 'trial', width: 92, left: true, cell: (i) => [swatch(i), `#${c.number[i]}${i === data.best ? ' best' : i === data.knee ? ' knee' : ''}`]},
    {key: 'state', label: 'state', width: 96, left: true, cell: (i) => h(`span.state-word.${c.state[i]}`, {title: data.why(i)}, c.dropped[i] ? 'dropped' : c.state[i])},
    data.study.space.envs && {key: 'env', label: 'game', width: 100, left: true, cell: (i) => c.env[i] || '–'},
    number('expected', 92, `expected ${data.metric}`, (i) => (believed(i) ? fmt.number(c.expected[i]) : '–')),
    number('expected_lo', 124, '95 %', (i) => (!believed(i) ? '–' : fmt.interval(c.expected_lo[i], c.expected_hi[i]))),
    number('n_seeds', 62, 'seeds', (i) => c.n_seeds[i] || '–'),
    number('score', 84, 'its run', (i) => h('span.soft', null, fmt.number(c.score[i] ?? c.live_score[i]))),
    number('cost', 100, 'cost', (i) => (c.cost[i] === null && c.live_s[i] ? `${fmt.duration(c.live_s[i])}…` : data.costText(i))),
    number('env_steps', 84, 'env steps', (i) => (c.env_steps[i] ? fmt.compact(c.env_steps[i]) : '–')),
    ...data.params.map((p) => number(p.key, 104, p.key.replaceAll('.', '.\u200b').replaceAll('_', '_\u200b'), (i) => data.paramText(p.key, i))),
    {key: 'device', label: 'device', width: 110, left: true, cell: (i) => c.device[i] || '–'},
    {key: 'origin', label: 'origin', width: 84, left: true, cell: (i) => c.origin[i] || '–'},
    number('seed', 100, 'seed', (i) => c.seed[i] ?? '–'),
    {key: 'started_ms', label: 'started', width: 136, left: true, cell: (i) => fmt.time(c.started_ms[i])},
    {key: 'finished_ms', label: 'ended', width: 136, left: true, cell: (i) => fmt.time(c.finished_ms[i])},
    {key: 'reason', label: 'reason, note', width: 360, left: true, cell: (i) => data.why(i)},
  ].filter(Boolean);
}
const HIDDEN = ['seed', 'started_ms', 'finished_ms', 'origin', 'reason'];

function sorted(data, rows, key, descending) {
  const column = data.column[key], sign = descending ? -1 : 1;
  const value = (i) => {
    const v = key === 'state' ? STATES.indexOf(column[i]) : column[i];
    return typeof v === 'number' && Number.isNaN(v) ? null : v;
  };
  return rows.sort((a, b) => {
    const x = value(a), y = value(b);
    if (x === null || y === null || x === undefined || y === undefined) return ((x ?? null) === null) - ((y ?? null) === null) || a - b;
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
  });
}

export async function show(el, data, ctx) {
  const {selection} = ctx, params = state();
  let sortText = params.get('sort') || '-number';
  const swatch = (i) => {
    const {colour} = selection, paint = colour?.colours[colour.bin[i]];
    if (!paint) return null;
    const mark = h('i.mark.swatch', {'aria-hidden': 'true'});
    mark.style.background = paint;
    return mark;
  };
  const columns = allColumns(data, swatch);
  let hidden = new Set(params.get('hide') !== null ? params.get('hide').split(',').filter(Boolean) : HIDDEN);
  const parallelEl = h('div.parallel'), tableEl = h('div');
  const search = h('input', {type: 'search', placeholder: 'Search: number, state, device, reason…', 'aria-label': 'search trials', value: selection.words, oninput: () => { selection.words = search.value; selection.change(true); }});
  const stateBox = h('select', {'aria-label': 'only trials in this state', onchange: () => { selection.states = stateBox.value ? new Set([stateBox.value]) : null; selection.change(); }},
    h('option', {value: ''}, 'any state'), STATES.map((s) => h('option', {value: s}, s)));
  const menu = h('details.columns-menu', null, h('summary', null, 'Columns'), h('div', null, columns.slice(1).map((c) => h('label', null,
    h('input', {type: 'checkbox', checked: !hidden.has(c.key), onchange: (event) => { event.target.checked ? hidden.delete(c.key) : hidden.add(c.key); setState({hide: [...hidden].join(',') || ','}); table.setColumns(visible()); }}),
    ' ', c.key === 'score' ? data.metric : c.key))));
  const save = h('button.small', {type: 'button', title: 'the rows and columns shown, as CSV', onclick: () => download(`${data.name}.csv`, csv())}, 'CSV');
  const visible = () => columns.filter((c) => !hidden.has(c.key));
  fill(el, card('All parameters', parallelEl, {note: 'drag along an axis to select; trials on the front are bold'}),
    card('Trials', [h('div.filters', null, search, stateBox, save, menu), tableEl]));
  if (!data.n) {
    fill(parallelEl, empty('No trial yet.', h('p.soft', null, 'Trials appear here as they start.')));
  }
  const table = new Table(tableEl, {columns: visible(), label: 'trials', href: (i) => trialUrl(data.name, i), rowClass: (i) => (data.onFront[i] ? 'front' : ''),
    on: {open: (i) => { selection.save(); go(trialUrl(data.name, i)); }, sort: (key) => { sortText = sortText === `-${key}` ? key : sortText === key ? `-${key}` : (key === 'score' || key === 'expected' || key === 'expected_lo') && data.maximize ? `-${key}` : key; setState({sort: sortText === '-number' ? null : sortText}); rowsAgain(); }}});
  const parallel = data.n && data.plotted.length ? new Parallel(parallelEl, data, selection.filters, {filter(key, range) { range ? selection.filters.set(key, range) : selection.filters.delete(key); sketchSoon(); }}) : null;
  if (data.n && !parallel) fill(parallelEl, empty('No trial is done yet.'));
  let frame = 0, resting = 0, rows = [];
  /* While a range is dragged: lines and count at once, the table when the drag pauses. */
  const sketchSoon = () => {
    tableEl.setAttribute('aria-busy', 'true');
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      selection.refresh();
      parallel.setFilters(selection.filters, selection.mask, selection.colour, true);
      clearTimeout(resting);
      resting = setTimeout(() => selection.change(), REST_MS);
    });
  };

  function csv() {
    /* words that a spreadsheet would run as a formula get an apostrophe, as in the report's CSV */
    const quote = (v) => { const text = v === null || v === undefined ? '' : typeof v === 'string' && /^[=+\-@\t\r]/.test(v) ? `'${v}` : String(v); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
    const shown = visible();
    return [shown.map((c) => quote(c.key)).join(','), ...rows.map((i) => shown.map((c) => quote(data.column[c.key][i])).join(','))].join('\r\n') + '\r\n';
  }

  function rowsAgain() {
    const descending = sortText.startsWith('-'), key = sortText.replace(/^-/, '');
    rows = selection.list();
    sorted(data, rows, data.column[key] ? key : 'number', descending);
    table.setSort(key, descending);
    table.setRows(rows);
    tableEl.removeAttribute('aria-busy');
  }
  function selected() {
    clearTimeout(resting);
    if (document.activeElement !== search) search.value = selection.words;
    stateBox.value = selection.states?.size === 1 ? [...selection.states][0] : '';
    parallel?.setFilters(selection.filters, selection.mask, selection.colour);
    rowsAgain();
  }
  selected();
  return {
    selected,
    update() { parallel?.update(); selected(); },
    running(event) {
      const c = data.column;
      if (event.trial >= data.n || c.state[event.trial] !== 'running') return;
      c.live_score[event.trial] = event.score;
      c.env_steps[event.trial] = event.env_steps;
      c.live_s[event.trial] = event.wall_s;
      table.refresh();
    },
    destroy() { clearTimeout(resting); cancelAnimationFrame(frame); parallel?.destroy(); table.destroy(); },
  };
}
