/* studies.js - all studies of the store: state, progress, best; search and order stand in the address. */
import {get} from './api.js';
import {fill, h, empty, command, shellWord} from './dom.js';
import {compareUrl, setState, state, studyUrl} from './address.js';
import {follow} from './live.js';
import * as fmt from './format.js';

/* The names of `trawl ls`. */
const STATE_HELP = {
  running: 'a controller lives and trials run',
  waiting: 'a controller lives, nothing of this study runs at the moment',
  interrupted: 'trials are marked running but no process runs them: trawl sweep --resume continues',
  ended: 'a limit is reached, or it was stopped',
  idle: 'no controller runs it',
  paused: 'no new trial starts until it is continued',
};
const ORDER = Object.keys(STATE_HELP);

export function stateChip(state) {
  return h(`span.chip.state-${state}`, {title: STATE_HELP[state]}, state);
}

/* Trials done of those that may be, or cost of the budget. */
export function progress(study) {
  const byTrials = study.trials_max ? (study.trials - study.branches) / study.trials_max : 0, byCost = study.budget_s ? study.cost_s / study.budget_s : 0;
  const share = Math.min(1, Math.max(byTrials, byCost));
  const text = byCost > byTrials ? `${fmt.duration(study.cost_s)} of ${fmt.duration(study.budget_s)}` : study.trials_max ? `${study.trials - study.branches} of ${study.trials_max} trials` : `${study.trials} trials`;
  const bar = share > 0 ? h('progress', {max: 1, value: share, 'aria-label': `progress: ${text}`}) : null;
  return h('div.progress', null, bar, h('span', null, text));
}

const bad = (study) => study.counts.failed + study.counts.lost;
const lastMs = (study) => study.finished_ms ?? study.created_ms ?? 0;

/* [key, label, numeric, value that it is sorted by]; hypervolumes are to references of their own, so they are not here. */
const COLUMNS = [['name', 'study', false, (s) => s.name.toLowerCase()], ['state', 'state', false, (s) => ORDER.indexOf(s.state)],
  ['progress', 'progress', false, (s) => s.trials], ['best', 'best, expected', true, (s) => s.best_score], ['failed', 'failed', true, bad],
  ['spent', 'spent', true, (s) => s.cost_s], ['last', 'last trial', false, lastMs]];
const FIRST_DOWN = new Set(['progress', 'best', 'failed', 'spent', 'last']);

/* As asked in the address; by default running ones first, then those that ran last. */
function inOrder(studies, sort) {
  const key = sort.replace(/^-/, ''), column = COLUMNS.find(([k]) => k === key), sign = sort.startsWith('-') ? -1 : 1;
  const usual = (a, b) => (b.state === 'running') - (a.state === 'running') || lastMs(b) - lastMs(a);
  if (!column) return [...studies].sort(usual);
  const known = (v) => v !== null && v !== undefined && v !== -1;
  return [...studies].sort((a, b) => {
    const x = column[3](a), y = column[3](b);
    return known(x) && known(y) ? sign * (x < y ? -1 : x > y ? 1 : 0) || usual(a, b) : known(y) - known(x);
  });
}

function fits(study, words) {
  const text = [study.name, study.state, study.env, study.method, study.metric, study.note, study.tags, ...study.devices].join(' ').toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function row(study) {
  const href = studyUrl(study.name);
  return h('tr', {'data-study': study.name},
    h('td.name', null, h('a', {href}, study.name), study.tags && study.tags.split(',').map((tag) => h('span.tag', null, tag)), h('small', null, [study.env, study.method, study.devices.length > 1 ? `${study.devices.length} devices` : study.devices[0]].filter(Boolean).join(', '))),
    h('td', null, stateChip(study.state)),
    h('td', null, progress(study)),
    h('td.num', {'data-label': `best ${study.metric}`}, fmt.number(study.best_score), study.best_trial !== null && [study.best_lo !== null && h('small', null, fmt.interval(study.best_lo, study.best_hi)),
      h('small', null, `${study.best_seeds > 1 ? `${study.best_seeds} seeds` : 'seen once'}, trial ${study.best_trial}`)]),
    h('td.num', {'data-label': 'failed or lost'}, bad(study) ? h('span.warn', null, bad(study)) : '0'),
    h('td.num', {'data-label': 'spent'}, fmt.duration(study.cost_s)),
    h('td', {'data-label': 'last trial'}, h('time', {datetime: study.finished_ms ? new Date(study.finished_ms).toISOString() : null, title: fmt.time(study.finished_ms)}, fmt.ago(study.finished_ms))));
}

export function where() {
  return ['Studies'];
}

export async function show(main, ctx) {
  const picked = new Set(), tableEl = h('div'), countEl = h('span.soft', {role: 'status'}), compare = h('a.button.primary', {hidden: true}, 'Compare');
  let words = state().get('q') || '', sort = state().get('sort') || '', studies = [];
  const search = h('input', {type: 'search', placeholder: 'Search: name, state, game, tag…', 'aria-label': 'search studies', value: words, oninput: () => { words = search.value; setState({q: words || null}); draw(); }});
  const offer = () => { compare.hidden = picked.size < 2; compare.href = compareUrl([], [...picked]); };
  const tick = (study) => h('td.tick', null, h('input', {type: 'checkbox', 'aria-label': `choose ${study.name} to compare`, checked: picked.has(study.name), onchange: (event) => {
    event.target.checked ? picked.add(study.name) : picked.delete(study.name);
    offer();
  }}));
  function sortBy(key) {
    const first = FIRST_DOWN.has(key) ? `-${key}` : key, second = FIRST_DOWN.has(key) ? key : `-${key}`;
    sort = sort === first ? second : sort === second ? '' : first;
    setState({sort: sort || null});
    draw();
    tableEl.querySelector(`button[data-key="${key}"]`)?.focus();
  }
  const head = ([key, label, numeric]) => h(numeric ? 'th.num' : 'th', {scope: 'col', 'aria-sort': sort === key ? 'ascending' : sort === `-${key}` ? 'descending' : null},
    h('button.sort', {type: 'button', 'data-key': key, title: `sort by ${label}`, onclick: () => sortBy(key)}, label));

  function draw() {
    const focused = document.activeElement?.closest?.('tr')?.dataset.study, onTick = document.activeElement?.type === 'checkbox';
    const shown = inOrder(words.trim() ? studies.filter((s) => fits(s, words.trim())) : studies, sort);
    countEl.textContent = shown.length < studies.length ? `${shown.length} of ${studies.length}` : `${studies.length} ${studies.length === 1 ? 'study' : 'studies'}`;
    fill(tableEl, shown.length ? h('div.scroll', {tabindex: '0'}, h('table.studies', null,
      h('thead', null, h('tr', null, h('th', {scope: 'col'}, h('span.sr', null, 'choose')), COLUMNS.map(head))),
      h('tbody', null, shown.map((study) => { const tr = row(study); tr.prepend(tick(study)); return tr; })))) : empty('No study fits these words.'));
    offer();
    /* a row that had the focus keeps it */
    if (focused !== undefined) [...tableEl.querySelectorAll('tr[data-study]')].find((tr) => tr.dataset.study === focused)?.querySelector(onTick ? 'input' : 'a').focus();
  }
  async function load() {
    const version = ctx.version;
    ({studies} = await get('/api/v1/studies', null, ctx.signal));
    if (!studies.length) {
      fill(main, empty('This store has no study yet.', h('p.soft', null, 'Start one; this page shows it as soon as its first trial runs:'),
        command(`trawl sweep examples/quickstart.ini --store ${shellWord(version.store_path)} --name first`)));
      return;
    }
    if (!tableEl.isConnected) fill(main, h('div.page-head', null, h('h1', null, 'Studies'), h('div.actions', null, search, countEl, compare)), tableEl, h('p.soft.small', null, `${version.program}, store ${version.store}`));
    draw();
  }
  await load();
  follow(ctx, null, (event) => event !== 'progress' && event !== 'model', load);
}
