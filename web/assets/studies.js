/* studies.js - all studies of the store: state, progress, best, where they run. */
import {get} from './api.js';
import {fill, h, empty, command, shellWord} from './dom.js';
import {compareUrl, studyUrl} from './app.js';
import {follow} from './live.js';
import * as fmt from './format.js';

export const STATES = {running: 'running', waiting: 'waiting', interrupted: 'interrupted', finished: 'finished', idle: 'idle', paused: 'paused'};
const STATE_HELP = {
  running: 'a controller lives and trials run',
  waiting: 'a controller lives, nothing runs at the moment',
  interrupted: 'trials are marked running but no process runs them: trawl sweep --resume continues',
  finished: 'the limit is reached',
  idle: 'no controller runs it',
  paused: 'no new trial starts until it is continued',
};

export function stateChip(state) {
  return h(`span.chip.state-${state}`, {title: STATE_HELP[state]}, STATES[state] || state);
}

/* Trials done of those that may be, or cost of the budget. */
export function progress(study) {
  const byTrials = study.trials_max ? study.trials / study.trials_max : 0, byCost = study.budget_s ? study.cost_s / study.budget_s : 0;
  const share = Math.min(1, Math.max(byTrials, byCost));
  const text = byCost > byTrials ? `${fmt.duration(study.cost_s)} of ${fmt.duration(study.budget_s)}` : study.trials_max ? `${study.trials} of ${study.trials_max} trials` : `${study.trials} trials`;
  const bar = share > 0 ? h('progress', {max: 1, value: share, 'aria-label': `progress: ${text}`}) : null;
  return h('div.progress', null, bar, h('span', null, text));
}

function row(study) {
  const href = studyUrl(study.name), bad = study.counts.failed + study.counts.lost;
  return h('tr', {'data-study': study.name},
    h('td.name', null, h('a', {href}, study.name), h('small', null, [study.env, study.method].filter(Boolean).join(', '))),
    h('td', null, stateChip(study.state)),
    h('td', null, progress(study)),
    h('td.num', {'data-label': `best ${study.metric}`}, fmt.number(study.best_score), study.best_trial !== null && [study.best_lo !== null && h('small', null, fmt.interval(study.best_lo, study.best_hi)),
      h('small', null, `${study.best_seeds > 1 ? `${study.best_seeds} seeds` : 'seen once'}, trial ${study.best_trial}`)]),
    h('td.num', {'data-label': 'front'}, study.n_front),
    h('td.num', {'data-label': 'hypervolume'}, fmt.number(study.hypervolume)),
    h('td.num', {'data-label': 'failed or lost'}, bad ? h('span.warn', null, bad) : '0'),
    h('td.num', {'data-label': 'spent'}, fmt.duration(study.cost_s)),
    h('td', {'data-label': 'devices'}, study.devices.length > 2 ? `${study.devices[0]} and ${study.devices.length - 1} more` : study.devices.join(', ') || '–'),
    h('td', {'data-label': 'last trial'}, h('time', {datetime: study.finished_ms ? new Date(study.finished_ms).toISOString() : null, title: fmt.time(study.finished_ms)}, fmt.ago(study.finished_ms))));
}

export function where() {
  return ['Studies'];
}

export async function show(main, ctx) {
  const picked = new Set();
  async function load() {
    const version = ctx.version, answer = await get('/api/v1/studies', null, ctx.signal);
    if (!answer.studies.length) {
      fill(main, empty('This store has no study yet.', h('p.soft', null, 'Start one; this page shows it as soon as its first trial runs:'),
        command(`trawl sweep examples/quickstart.ini --store ${shellWord(version.store_path)} --name first`)));
      return;
    }
    const compare = h('a.button.primary', null, 'Compare'), focused = document.activeElement?.closest?.('tr')?.dataset.study, onTick = document.activeElement?.type === 'checkbox';
    const offer = () => { compare.hidden = picked.size < 2; compare.href = compareUrl([], [...picked]); };
    offer();
    const tick = (study) => h('td.tick', null, h('input', {type: 'checkbox', 'aria-label': `choose ${study.name} to compare`, checked: picked.has(study.name), onchange: (event) => {
      event.target.checked ? picked.add(study.name) : picked.delete(study.name);
      offer();
    }}));
    const studies = [...answer.studies].sort((a, b) => (b.state === 'running') - (a.state === 'running') || (b.finished_ms ?? b.created_ms) - (a.finished_ms ?? a.created_ms));
    const head = ['', 'study', 'state', 'progress', 'best, expected', 'front', 'hypervolume', 'failed', 'spent', 'devices', 'last trial'];
    fill(main,
      h('div.page-head', null, h('h1', null, 'Studies'), h('div.actions', null, compare)),
      h('div.scroll', null, h('table.studies', null,
        h('thead', null, h('tr', null, head.map((text, i) => h(i > 3 && i < 9 ? 'th.num' : 'th', {scope: 'col'}, text || h('span.sr', null, 'choose'))))),
        h('tbody', null, studies.map((study) => add(row(study), tick(study)))))),
      h('p.soft.small', null, `${version.program}, store ${version.store}`));
    /* a row that had the focus keeps it */
    if (focused !== undefined) [...main.querySelectorAll('tr[data-study]')].find((tr) => tr.dataset.study === focused)?.querySelector(onTick ? 'input' : 'a').focus();
  }
  const add = (tr, cell) => { tr.prepend(cell); return tr; };
  await load();
  follow(ctx, null, (event) => event !== 'progress' && event !== 'model', load);
}
