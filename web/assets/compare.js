/* compare.js - studies over each other (fronts, hypervolume to one reference, differences of their configs), and learning curves
 * of trials.
 *
 * In the address: trials=STUDY/NUMBER,... and studies=NAME,...; trials of the same parameters (reruns with other
 * seeds) become one series: mean, and a band over the seeds. A study's curve is that of its best config, by all of its seeds. */
import {get, getSlow, studyPath} from './api.js';
import {card, empty, fill, h, renew, segments, table} from './dom.js';
import {compareUrl, parseList, setState, state, studyUrl, trialUrl} from './address.js';
import {follow} from './live.js';
import {showFronts} from './charts/fronts.js';
import {OVER, seriesKey, showLines} from './charts/lines.js';
import * as fmt from './format.js';

const GRID = 160;

export function where() {
  return ['Compare', ['Compare']];
}

function parseTrial(text) {
  const at = text.lastIndexOf('/');
  return at > 0 && /^\d+$/.test(text.slice(at + 1)) ? {study: text.slice(0, at), number: Number(text.slice(at + 1))} : null;
}

/* y of a curve at x, linear between its points; NaN outside. */
function sample(curve, over, x) {
  const xs = curve[over], ys = curve.value;
  if (!xs.length || x < xs[0] || x > xs.at(-1)) return NaN;
  let lo = 0, hi = xs.length - 1;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (xs[mid] <= x) lo = mid;
    else hi = mid;
  }
  return xs[hi] === xs[lo] ? ys[hi] : ys[lo] + (ys[hi] - ys[lo]) * (x - xs[lo]) / (xs[hi] - xs[lo]);
}

/* Mean of several curves with one standard deviation, where at least half of the curves have values. */
export function meanBand(curves, over) {
  const end = Math.max(0, ...curves.map((c) => c[over].at(-1) ?? 0)), out = {x: [], y: [], lo: [], hi: []};
  for (let k = 1; k <= GRID; k++) {
    const x = end * k / GRID, ys = curves.map((c) => sample(c, over, x)).filter(Number.isFinite);
    if (ys.length < Math.max(1, curves.length / 2)) continue;
    const mean = ys.reduce((a, b) => a + b, 0) / ys.length;
    const sd = ys.length > 1 ? Math.sqrt(ys.reduce((a, b) => a + (b - mean) ** 2, 0) / (ys.length - 1)) : 0;
    out.x.push(x);
    out.y.push(mean);
    out.lo.push(mean - sd);
    out.hi.push(mean + sd);
  }
  return out;
}

async function loadTrial(entry, ctx) {
  const [answer, {curves}] = await Promise.all([get(studyPath(entry.study, `/trials/${entry.number}`), null, ctx.signal),
    get(studyPath(entry.study, `/trials/${entry.number}/curves`), {points: 400}, ctx.signal)]);
  return {...entry, trial: answer.trial, params: answer.params, curve: Object.values(curves)[0] ?? {env_steps: [], wall_s: [], value: []}, metric: Object.keys(curves)[0]};
}

/* The trials that represent a study: all runs of its best config, not its luckiest runs. */
async function studyTrials(name, ctx) {
  const study = await get(studyPath(name), null, ctx.signal), best = study.best_trial ?? study.best_run_trial;
  if (best === null) return [];
  const {rows} = await get(studyPath(name, `/trials/${best}/seeds`), null, ctx.signal);
  return rows.filter(([, state]) => state === 'done').map(([number]) => ({study: name, number, group: `study ${name}`}));
}

/* Studies beside each other: where each part comes from stands in /compare. */
function studiesTable(answer) {
  const many = answer.attained.length > 0;
  return table(['study', ...(many ? ['search'] : []), ...['hypervolume', `best, expected ${answer.metric}`, '95 %', 'seeds', 'trials', 'spent'].map((num) => ({num}))],
    answer.studies.map((s, k) => h('tr', null, h('td', null, seriesKey(k, h('a', {href: studyUrl(s.study)}, s.study))), many && h('td.soft', null, s.group === s.study ? `seed ${s.seed}` : `as ${s.group}, seed ${s.seed}`),
      h('td.num', null, fmt.number(s.hypervolume)), h('td.num', null, s.best_trial === undefined ? '–' : h('a', {href: trialUrl(s.study, s.best_trial)}, fmt.number(s.best_score))),
      h('td.num', null, Number.isFinite(s.best_lo) ? fmt.interval(s.best_lo, s.best_hi) : '–'), h('td.num', null, s.best_seeds > 1 ? s.best_seeds : 'seen once'), h('td.num', null, s.trials), h('td.num', null, fmt.duration(s.cost_s)))));
}

function configTable(answer) {
  if (!answer.differences.length) return h('p.soft', null, 'Their configs are the same.');
  return table(['option', ...answer.studies.map((s) => s.study)], answer.differences.map((row) => h('tr', null, h('td', null, row.key), row.values.map((v) => h('td.wrap', null, v ?? '–')))), {tall: true});
}

function groups(trials) {
  const found = new Map();
  for (const t of trials) {
    const key = t.group ?? `${t.study}\n${JSON.stringify(t.params)}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(t);
  }
  return [...found.values()];
}

function label(group) {
  if (group[0].group) return `${group[0].study}: best config #${Math.min(...group.map((t) => t.number))}${group.length > 1 ? ` (${group.length} seeds)` : ', seen once'}`;
  if (group.length === 1) return `${group[0].study} #${group[0].number}`;
  return `${group[0].study} #${group.map((t) => t.number).join(', #')} (${group.length} seeds)`;
}

/* Trials without a curve are only in the table; a note states it. */
function recorded(group) {
  const n = group.filter((t) => t.curve.value.length).length;
  return n === group.length ? '' : n === 0 ? ', no curve recorded' : `, ${n} with a recorded curve`;
}

/* The differences between the trials. */
function differences(trials) {
  const keys = [...new Set(trials.flatMap((t) => Object.keys(t.params)))].filter((key) => new Set(trials.map((t) => JSON.stringify(t.params[key]))).size > 1);
  const show = (value) => (value === undefined ? '–' : typeof value === 'number' ? fmt.number(value) : String(value));
  return table(['trial', ...['its run', 'training time', ...keys.map((key) => key.replaceAll('_', '_\u200b'))].map((num) => ({num}))],
    trials.map((t) => h('tr', null, h('td', null, h('a', {href: trialUrl(t.study, t.number)}, `${t.study} #${t.number}`)),
      h('td.num', null, fmt.number(t.trial.score)), h('td.num', null, fmt.duration(t.trial.cost_s)), keys.map((key) => h('td.num', null, show(t.params[key]))))));
}

export async function show(main, ctx) {
  const wanted = () => ({trials: parseList(state().get('trials')).map(parseTrial).filter(Boolean), studies: parseList(state().get('studies'))});
  const listEl = h('div.series-list'), chartEl = h('div.chart'), tableEl = h('div'), frontEl = h('div.chart'), studiesEl = h('div'), configEl = h('div');
  const frontCard = card('Fronts', [frontEl, studiesEl], {note: 'as expected of fresh runs; hypervolume to one common reference'}), configCard = card('Differences between their configs', configEl);
  frontCard.hidden = configCard.hidden = true;
  let fronts = null;
  let over = state().get('over') === 'wall_s' ? 'wall_s' : 'env_steps', loaded = [], lacking = [], chart = null;
  const {studies} = await get('/api/v1/studies', null, ctx.signal);
  const choose = segments('over what', OVER, over, (key) => { over = key; setState({over: key === 'env_steps' ? null : key}); draw(); });
  const study = h('select', {'aria-label': 'study'}, studies.map((s) => h('option', {value: s.name}, s.name))), number = h('input', {type: 'number', min: '0', placeholder: 'its best', 'aria-label': 'trial number; empty: the study'});
  number.style.width = '100px';
  const form = h('form.form', {onsubmit: (event) => { event.preventDefault(); change((trials, names) => (number.value === '' ? [trials, [...names, study.value]] : [[...trials, `${study.value}/${number.value}`], names])); }},
    'Add', study, h('label.soft', null, 'trial ', number), h('button', {type: 'submit'}, 'Add'));
  fill(main, h('div.page-head', null, h('h1', null, 'Compare')), frontCard, configCard, card('Learning curves', [listEl, chartEl], {extra: choose, note: 'band: one standard deviation over seeds or runs'}), card('Add more', form), card('Differences between these trials', tableEl));

  function change(edit) {
    const target = compareUrl(...edit(parseList(state().get('trials')), parseList(state().get('studies'))));
    history.pushState(null, '', over === 'env_steps' ? target : `${target}${target.includes('?') ? '&' : '?'}over=${over}`);
    load().catch((problem) => { if (!ctx.signal.aborted) fill(chartEl, h('p.warn', null, problem.message)); });
  }
  function remove(group) {
    change((trials, names) => [trials.filter((t) => !group.some((g) => !g.group && `${g.study}/${g.number}` === t)), names.filter((name) => group[0].group !== `study ${name}`)]);
  }
  async function draw() {
    const all = groups(loaded);
    renew(listEl, all.map((group, k) => h('div', {'data-key': label(group)}, seriesKey(k, label(group) + recorded(group)), h('a.small', {href: group[0].group ? studyUrl(group[0].study) : trialUrl(group[0].study, group[0].number)}, 'open'),
      h('button.small', {type: 'button', title: 'take it out', 'aria-label': `take ${label(group)} out`, onclick: () => remove(group)}, '×'))),
      lacking.map((part) => h('div.warn', {'data-key': `lacks ${part.study} ${part.number ?? ''}`}, part.text, h('button.small', {type: 'button', 'aria-label': `take ${part.study} out`, onclick: () => remove([{...part, group: part.number === undefined && `study ${part.study}`}])}, '×'))));
    if (!all.length) {
      chart?.destroy();
      fill(chartEl, empty('Nothing to compare yet.', h('p.soft', null, 'Add trials or studies below, or choose trials in a study’s table.')));
      renew(tableEl, h('p.soft', null, 'Two or more trials are needed.'));
      return;
    }
    const series = all.map((group) => ({label: label(group), ...(group.length > 1 ? meanBand(group.map((t) => t.curve).filter((curve) => curve.value.length), over) : {x: group[0].curve[over], y: group[0].curve.value})}));
    chart = await showLines(chartEl, series, {xTitle: over === 'wall_s' ? 'seconds of training' : 'env steps', time: over === 'wall_s', yTitle: loaded[0].metric, height: 360});
    renew(tableEl, loaded.length > 1 ? differences(loaded) : h('p.soft', null, 'Two or more trials are needed.'));
  }
  async function loadStudies(names) {
    const several = names.length > 1;
    frontCard.hidden = configCard.hidden = !several;
    if (!several) return;
    let answer;
    try {
      answer = await getSlow('/api/v1/compare', {studies: JSON.stringify(names)}, ctx.signal);
    } catch (problem) {
      if (problem.status !== 400 && problem.status !== 404) throw problem;
      fill(frontEl, h('p.warn', null, problem.message)); /* they measure different things, or one has no result yet */
      fill(studiesEl);
      configCard.hidden = true;
      return;
    }
    fronts?.destroy();
    fronts = await showFronts(frontEl, answer);
    renew(studiesEl, answer.attained.length > 0 && h('p.soft.small', null, 'Wide line and band: the score that half, and from three quarters down to a quarter, of the studies of one search under several seeds attain at a cost.'), studiesTable(answer));
    renew(configEl, configTable(answer));
  }
  async function load() {
    const want = wanted(), missing = [];
    /* what the server has not got is named, and the others are shown; no answer is another matter: follow() tries again */
    const orMissing = (promise, part) => promise.catch((problem) => { if (problem.status !== 404) throw problem; missing.push({...part, text: problem.message}); return []; });
    const ofStudies = await Promise.all(want.studies.map((name) => orMissing(studyTrials(name, ctx), {study: name})));
    loaded = (await Promise.all([...want.trials, ...ofStudies.flat()].slice(0, 60).map((entry) => orMissing(loadTrial(entry, ctx), entry)))).flat();
    lacking = missing;
    await Promise.all([draw(), loadStudies(want.studies.filter((name) => !missing.some((part) => part.study === name && part.number === undefined)))]);
  }
  await load();
  ctx.onLeave(() => { chart?.destroy(); fronts?.destroy(); });
  follow(ctx, null, (event, what) => event === 'studies' || lacking.some((t) => t.study === what.study) ||
    loaded.some((t) => t.study === what.study && (what.trial === undefined || t.number === what.trial)) ||
    (wanted().studies.includes(what.study) && !loaded.some((t) => t.study === what.study)), load); /* one that had no result to show yet */
}
