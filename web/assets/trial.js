/* trial.js - one trial: its config, curves, result, other seeds of its config, and the commands that repeat it. */
import {get, studyPath} from './api.js';
import {card, command, copyButton, empty, fill, h, segments, table, tile} from './dom.js';
import {compareUrl, setState, state, studyUrl, trialUrl} from './address.js';
import {exportButtons} from './exports.js';
import {follow} from './live.js';
import {OVER, showLines} from './charts/lines.js';
import {player} from './play.js';
import {showSeeds} from './seeds.js';
import {actor} from './controls.js';
import * as fmt from './format.js';

export function where(ctx) {
  return [`Trial ${ctx.number}, ${ctx.name}`, [ctx.name, studyUrl(ctx.name)], [`Trial ${ctx.number}`]];
}

/* -- config -- */

function configTable(answer, only) {
  const against = answer.against !== null && answer.against !== undefined;
  const rows = (answer.config ?? []).filter((row) => only === 'all' || (only === 'changed' ? row.differs || row.origin === 'searched' : row.against !== undefined && row.against !== row.value));
  if (!rows.length) return empty(only === 'against' ? 'Both trials have the same config.' : 'Every value is the default.');
  return table(['option', `trial ${answer.trial.number}`, 'default', against && `trial ${answer.against}`, 'from'].filter(Boolean),
    rows.map((row) => h(`tr${row.differs ? '.differs' : ''}${against && row.against !== row.value ? '.against' : ''}`, null,
      h('td.option', null, row.key), h('td.value', null, row.value), h('td.soft', null, row.default ?? '–'), against && h('td.other', null, row.against ?? '–'), h('td.soft', null, row.origin))), {kind: '.config'});
}

function configCard(data, answer, reload) {
  const body = h('div');
  let only = ['all', 'changed', 'against'].includes(state().get('show')) ? state().get('show') : 'changed';
  const other = h('input', {type: 'number', min: '0', placeholder: 'trial', value: answer.against ?? '', 'aria-label': 'compare with trial number', onchange: () => { setState({against: other.value || null, show: other.value ? 'against' : null}); reload(); }});
  other.style.width = '90px';
  const draw = () => fill(body, configTable(answer, only));
  draw();
  const has = answer.against !== null && answer.against !== undefined;
  const which = segments('which options', [['changed', 'Changed'], ['all', 'All'], ...(has ? [['against', `Unlike ${answer.against}`]] : [])], only, (key) => { only = key; setState({show: key === 'changed' ? null : key}); draw(); });
  return card('Config', body, {id: 'config', extra: [which, h('label.soft.small', null, 'against ', other)]});
}

/* -- curves -- */

const IS_LOSS = (name) => /loss|entropy|kl$|clip_fraction|explained|grad_norm/.test(name);

function curvesCard(data, answer, ctx, shown) {
  const names = answer.metrics ?? [], metric = data.metric;
  const first = names.find((n) => n === metric || n.endsWith(`/${metric}`)) ?? names[0];
  let over = state().get('over') === 'wall_s' ? 'wall_s' : 'env_steps';
  const main = h('div.chart'), grid = h('div.slices'), bodies = new Map();
  const pick = h('select', {'aria-label': 'which number', onchange: () => { setState({metric: pick.value === first ? null : pick.value}); draw(); }}, names.map((n) => h('option', {value: n}, n)));
  pick.value = names.includes(state().get('metric')) ? state().get('metric') : first;
  const choose = segments('over what', OVER, over, (key) => { over = key; setState({over: key === 'env_steps' ? null : key}); draw(); });
  const losses = names.filter((n) => IS_LOSS(n) && !n.startsWith('profile/')).slice(0, 8);
  let turn = 0;

  async function draw() {
    const mine = ++turn, wanted = [...new Set([pick.value, ...losses])];
    const {curves} = await get(studyPath(data.name, `/trials/${answer.trial.number}/curves`), {metrics: wanted.join(','), points: 500}, ctx.signal);
    if (mine !== turn) return;
    const options = {xTitle: over === 'wall_s' ? 'seconds of training' : 'env steps', time: over === 'wall_s'};
    const series = (name) => [{label: name, x: curves[name]?.[over] ?? [], y: curves[name]?.value ?? []}];
    shown.add(await showLines(main, series(pick.value), {...options, label: `${pick.value} of trial ${answer.trial.number} over ${options.xTitle}`}));
    for (const name of losses) {
      if (!bodies.has(name)) {
        bodies.set(name, h('div.chart'));
        grid.append(h('div.slice', null, h('h3', null, name), bodies.get(name)));
      }
      shown.add(await showLines(bodies.get(name), series(name), {...options, xTitle: '', height: 140}));
    }
  }
  const body = names.length ? [main, losses.length > 0 && h('h3', null, 'Losses'), grid] : empty(answer.trial.state === 'running' || answer.trial.state === 'queued' ? 'This trial has reported nothing yet.' : 'No curve of this trial was recorded.');
  return {el: card('Learning curves', body, {id: 'curves', extra: names.length ? [pick, choose] : null}), draw: names.length ? draw : async () => {}};
}

/* Where an iteration's time goes: profile/ metrics are seconds since training began, so the last counts. */
async function phases(data, answer, ctx) {
  const names = (answer.metrics ?? []).filter((n) => /^profile\//.test(n));
  if (names.length < 2) return null;
  const {curves} = await get(studyPath(data.name, `/trials/${answer.trial.number}/curves`), {metrics: names.join(','), points: 50}, ctx.signal);
  const parts = names.map((name) => {
    const values = (curves[name]?.value ?? []).filter(Number.isFinite);
    return [name.slice('profile/'.length).replaceAll('_', ' '), values.at(-1) ?? 0];
  }).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  const total = parts.reduce((sum, [, value]) => sum + value, 0);
  if (!total) return null;
  const bar = h('div.phases', {role: 'img', 'aria-label': parts.map(([name, v]) => `${name} ${fmt.percent(v / total)}`).join(', ')});
  parts.forEach(([name, value], k) => {
    const part = h('div', {title: `${name}: ${fmt.percent(value / total)}`});
    part.style.width = `${100 * value / total}%`;
    part.style.background = `var(--series-${k % 6 + 1})`;
    bar.append(part);
  });
  return card('Where the time goes', [bar, h('div.legend', null, parts.map(([name, value], k) => {
    const mark = h('i.mark', {'aria-hidden': 'true'});
    mark.style.background = `var(--series-${k % 6 + 1})`;
    return h('span.key', null, mark, `${name} ${fmt.percent(value / total)}`);
  }))], {note: `of ${fmt.duration(total)} in all`});
}

async function logCard(data, answer, ctx) {
  let log;
  try {
    log = await get(studyPath(data.name, `/trials/${answer.trial.number}/log`), {bytes: 65536}, ctx.signal);
  } catch (problem) {
    if (ctx.signal.aborted) throw problem;
    log = {available: false, note: problem.message};
  }
  const body = log.available ? h('pre.log', {tabindex: '0'}, log.text || '(empty)') : h('p.soft', null, log.note || 'This trial left no log.');
  const el = card('Log', body, {id: 'log', note: log.available ? `${log.truncated ? 'the end of ' : ''}${fmt.compact(log.bytes)} bytes` : null, extra: log.available ? copyButton(log.text) : null});
  requestAnimationFrame(() => { if (log.available) body.scrollTop = body.scrollHeight; });
  return el;
}

/* -- the page -- */

function head(data, answer, n) {
  const t = answer.trial, total = data.trials;
  const number = (to, label, title) => (to >= 0 && to < total ? h('a.button.small', {href: trialUrl(data.name, to), title}, label) : null);
  return [h('div.page-head', null, h('div', null, h('h1', null, `Trial ${n}`, ' ', h(`span.chip.state-${t.state}`, null, t.state), t.on_front && h('span.tag', null, 'on the front'),
    n === data.best_trial && h('span.tag', null, 'best'), n === data.knee_trial && h('span.tag', null, 'knee')),
  h('p.soft', null, [`chosen by ${t.origin}`, t.device, `seed ${t.seed}`, t.attempt > 1 && `attempt ${t.attempt}`, `${fmt.time(t.started_ms)} to ${t.finished_ms ? fmt.time(t.finished_ms) : 'now'}`].filter(Boolean).join(' · ')),
  answer.belief?.score_mean !== null && h('p.soft', null, `Expected of this config: ${fmt.number(answer.belief.score_mean)}, ${fmt.interval(answer.belief.score_lo, answer.belief.score_hi)} (95 % interval of the mean of ${data.promise_seeds} runs under fresh seeds); ${fmt.seeds(answer.belief.n_seeds, answer.belief.seeds_mean)}.`),
  t.dropped && h('p.warn', null, `Dropped, models and front ignore it: ${t.dropped}`), t.reason && h('p.warn', null, t.reason),
  (t.note || t.tags) && h('p.soft', null, [t.note, t.tags].filter(Boolean).join(' · '))),
  h('div.controls', null, number(n - 1, '← previous', `trial ${n - 1}`), number(n + 1, 'next →', `trial ${n + 1}`), h('a.button.small', {href: compareUrl([n, data.best_trial].filter((k, at) => k !== null && k !== undefined && (at === 0 || k !== n)).map((k) => `${data.name}/${k}`))}, 'Compare'))),
  h('div.tiles', null, answer.belief?.score_mean !== null && tile(fmt.number(answer.belief.score_mean), `expected ${data.metric}, 95 %: ${fmt.interval(answer.belief.score_lo, answer.belief.score_hi)}`),
    tile(fmt.number(t.score ?? t.live_score), t.score === null && t.live_score !== null ? `${data.metric} so far` : `${data.metric} of this run`),
    tile(t.cost === null ? fmt.duration(t.live_s) : fmt.cost(t.cost, data.cost_unit), t.cost === null ? 'running for' : 'cost'),
    t.cost_s > 0 && t.start_s > 0 && fmt.duration(t.start_s + t.cost_s) !== fmt.duration(t.cost_s) && tile(fmt.duration(t.start_s + t.cost_s), 'from process start'),
    t.eval_episodes > 0 && tile(t.score_se === null ? '–' : `± ${fmt.number(t.score_se)}`, `standard error, ${t.eval_episodes} episodes${t.eval_unfinished ? `, ${t.eval_unfinished} unfinished` : ''}`),
    tile(t.env_steps ? fmt.compact(t.env_steps) : '–', 'env steps'),
    t.cost_s > 0 && t.env_steps > 0 && tile(`${fmt.compact(t.env_steps / t.cost_s)}/s`, 'env steps each second'))];
}

async function takeHome(data, answer, n, ctx) {
  const finished = answer.trial.state === 'done', save = finished && await exportButtons(data.name, n, {trial: n}, 'Download');
  const watch = h('div');
  if (answer.can_play) player(watch, data.name, n, ctx);
  else fill(watch, h('p.soft', null, fmt.sentence(answer.play_note || 'no checkpoint, so nothing to watch')));
  return [card('Train it again', [command(answer.train_command, 'Copy train line'),
    save,
    finished && command(answer.export_command),
    answer.checkpoint && h('p.soft.small', null, answer.checkpoint.exists ? `Checkpoint ${answer.checkpoint.path}, ${fmt.compact(answer.checkpoint.bytes)} bytes` : `Its checkpoint ${answer.checkpoint.path} no longer exists.`)]),
  card('Watch it play', watch, {id: 'play'})];
}

export async function show(main, ctx) {
  const n = ctx.number, shown = new Set();
  const data = await get(studyPath(ctx.name), null, ctx.signal);
  const headEl = h('div'), configEl = h('div'), luckEl = h('div'), said = h('p.said', {role: 'status', hidden: true}), sideEl = h('div'), curvesEl = h('div'), lateEl = h('div');
  let drawCurves = async () => {}, last = null;
  const act = actor(ctx.name, ctx.version, (text, bad) => { said.hidden = !text; said.textContent = text; said.classList.toggle('warn', !!bad); });
  const luck = () => showSeeds(luckEl, data, ctx.version.store_path, n, act, ctx.signal);

  async function load(whole) {
    const answer = await get(studyPath(ctx.name, `/trials/${n}`), {against: state().get('against')}, ctx.signal);
    fill(headEl, head(data, answer, n));
    if (whole || answer.trial.state !== last) {
      fill(configEl, configCard(data, answer, () => load(true)));
      if (whole !== 'config') fill(sideEl, await takeHome(data, answer, n, ctx));
    }
    if (!curvesEl.childElementCount || (whole !== 'config' && answer.trial.state !== last)) {
      const curves = curvesCard(data, answer, ctx, shown);
      drawCurves = curves.draw;
      fill(curvesEl, curves.el);
      await drawCurves();
      fill(lateEl, await phases(data, answer, ctx), await logCard(data, answer, ctx));
    }
    last = answer.trial.state;
  }
  fill(main, headEl, said, h('div.columns', null, h('div', null, curvesEl, configEl), h('div', null, luckEl, sideEl, lateEl)));
  await Promise.all([load(true), luck()]);
  ctx.onLeave(() => { for (const chart of shown) chart.destroy(); });
  /* news of the study may change what is expected of this trial, and which are the best and the knee */
  follow(ctx, ctx.name, (event, what) => event === 'study' || what.trial === n, async () => {
    Object.assign(data, await get(studyPath(ctx.name), null, ctx.signal));
    await Promise.all([load(false), luck()]);
    if (last === 'running') await drawCurves();
  });
}
