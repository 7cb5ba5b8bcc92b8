/* study_params.js - the parameters: importance for score and cost, the score over two and along each of them, and what comes next. */
import {getModel, studyPath} from '../api.js';
import {card, empty, fill, h, legendKey} from '../dom.js';
import {go, setState, site, state, trialUrl} from '../address.js';
import {Contour} from '../charts/contour.js';
import {showImportance} from '../charts/importance.js';
import {showSlice} from '../charts/slice.js';
import * as fmt from '../format.js';

function scoreRange(data, slices) {
  const scores = data.plotted.map((i) => data.score[i]).sort((a, b) => a - b);
  if (!scores.length) return [0, 1];
  const tenth = Math.floor(scores.length / 20);
  let lo = scores[data.maximize ? tenth : 0], hi = scores[data.maximize ? scores.length - 1 : scores.length - 1 - tenth];
  for (const s of slices) for (const p of s.points) [lo, hi] = [Math.min(lo, p.score), Math.max(hi, p.score)];
  const margin = hi > lo ? (hi - lo) * 0.06 : Math.abs(hi) * 0.1 || 0.5;
  return [lo - margin, hi + margin];
}

/* What the search would try next, as /model/next has it. */
function nextList(data, next) {
  if (!next.points?.length) return h('p.soft', null, next.why_none ? `Nothing is proposed: ${next.why_none}.` : 'Nothing is proposed yet.');
  return h('ol.proposals', null, next.points.map((p) => h('li', null, h('p', null, fmt.sentence(p.why)),
    h('p.soft.small', null, `95 % ${fmt.interval(p.score_lo, p.score_hi)}, ${fmt.cost(p.cost_lo, data.costUnit)} to ${fmt.cost(p.cost_hi, data.costUnit)}`),
    h('p.soft.small', null, Object.entries(p.params).map(([key, v]) => `${key.split('.').at(-1)} ${typeof v === 'number' ? fmt.number(v) : v}`).join(', ')))));
}

/* The card of two parameters; at(): through which trial. */
function overTwo(data, ctx, at) {
  const {selection} = ctx, plotEl = h('div.chart'), nextEl = h('div.prose'), atNote = h('p.soft.small');
  const option = (p) => h('option', {value: p.key}, p.key), label = (text, box) => h('label.soft.small', null, text, box);
  const box = (name) => h('select', {'aria-label': `parameter of the ${name} axis`, onchange: () => { setState({x: xBox.value, y: yBox.value}); draw(); }}, data.params.map(option));
  const xBox = box('horizontal'), yBox = box('vertical');
  const el = card('Two parameters, and what comes next', h('div.columns', null, h('div', null, plotEl, atNote), h('div', null, h('h3', null, 'What the search would try next, and why'), nextEl)),
    {id: 'contour', extra: [label('x ', xBox), label('y ', yBox)], note: 'darker: a better score is expected'});
  let chart = null, grid = null, next = {points: []}, turn = 0;
  el.hidden = data.params.length < 2;

  async function draw() {
    const mine = ++turn, [x, y] = [xBox, yBox].map((b) => data.params.find((p) => p.key === b.value));
    if (el.hidden) return;
    if (x === y) { fill(atNote, 'Choose two parameters that differ.'); return; }
    try {
      [grid, next] = await Promise.all([read(x, y), getModel(studyPath(data.name, '/model/next'), null, ctx.signal)]);
    } catch (problem) {
      if (!ctx.signal.aborted && mine === turn) fill(atNote, h('span.warn', null, problem.message));
      return;
    }
    if (mine !== turn || !grid.score) return;
    chart ??= new Contour(plotEl, data, {open: (i) => go(trialUrl(data.name, i))});
    chart.show(x, y, grid, next.points ?? [], selection);
    fill(atNote, 'The other parameters stay as in ', h('a', {href: trialUrl(data.name, grid.at)}, `trial ${grid.at}`), '; dots are trials, outlined on the front; numbers mark the next proposals.');
    fill(nextEl, nextList(data, next));
  }
  /* a site holds each pair once */
  async function read(x, y) {
    const order = data.params.indexOf(x) < data.params.indexOf(y), [a, b] = site && !order ? [y, x] : [x, y];
    const g = await getModel(studyPath(data.name, '/model/contour'), {x: a.key, y: b.key, at: at()}, ctx.signal);
    if (a === x || !g.score) return g;
    const turned = (list) => g.x.values.flatMap((_, i) => g.y.values.map((__, j) => list[j * g.x.values.length + i]));
    return {...g, x: g.y, y: g.x, score: turned(g.score), score_lo: turned(g.score_lo), score_hi: turned(g.score_hi), cost: turned(g.cost)};
  }
  return {el,
    /* the two that matter most, unless the address names others */
    begin(insight) {
      const order = [...insight.params].sort((a, b) => b.score.effect - a.score.effect).map((p) => p.key), named = (key) => data.params.some((p) => p.key === state().get(key)) && state().get(key);
      xBox.value = named('x') || order.find((key) => key !== named('y')) || order[0];
      yBox.value = named('y') || order.find((key) => key !== xBox.value);
      draw();
    },
    selected() { if (chart && grid?.score) chart.draw(); },
    destroy() { chart?.destroy(); }};
}

export async function show(el, data, ctx) {
  const importanceEl = h('div.chart'), slicesEl = h('div.slices'), notes = h('div.prose'), atNote = h('p.soft.small');
  const at = state().get('at') || 'recommended';
  const choose = h('select', {'aria-label': 'where the slices go through', onchange: (event) => { setState({at: event.target.value === 'recommended' ? null : event.target.value}); draw(); }},
    [['recommended', 'recommended trial'], ['best-run', 'best run'], ['knee', 'knee']].map(([value, text]) => h('option', {value}, text)),
    [...new Set([...data.front.map(String), /^\d+$/.test(at) && at])].filter(Boolean).map((n) => h('option', {value: n}, `trial ${n}`)));
  choose.value = at;
  const shown = [], {selection} = ctx;
  const over = overTwo(data, ctx, () => choose.value);
  const notesCard = card('Bounds and notes', notes), slicesCard = card('Score along each parameter', [atNote, slicesEl], {note: 'as the model sees it; band: 95 %', extra: h('label.soft.small', null, 'through the ', choose)});
  fill(el, h('div.halves', null, card('What matters', importanceEl, {note: 'share of variance explained by each parameter alone; line: two standard deviations'}), notesCard), over.el, slicesCard);
  const clear = () => { for (const chart of shown.splice(0)) chart.destroy(); };

  async function draw() {
    const turn = draw.turn = (draw.turn || 0) + 1;
    if (!importanceEl.childElementCount) fill(importanceEl, h('p.soft', null, 'The model is being computed…'));
    const insight = await getModel(studyPath(data.name, '/insight'), null, ctx.signal);
    if (turn !== draw.turn) return;
    clear();
    const known = insight.model !== 'none' && !!insight.params;
    notesCard.hidden = slicesCard.hidden = !known;
    over.el.hidden = !known || data.params.length < 2;
    if (!known) {
      fill(importanceEl, empty('No model yet.', h('p.soft', null, fmt.sentence(insight.note || 'it comes with a few finished trials'))));
      return;
    }
    fill(importanceEl);
    over.begin(insight);
    shown.push(await showImportance(importanceEl, insight, data.metric));
    importanceEl.prepend(h('div.legend', null, legendKey('bar-score', data.metric), legendKey('bar-cost', 'cost')));
    const leaning = insight.params.filter((p) => p.leans_on);
    fill(notes, leaning.map((p) => h('p', null, h('b', null, p.key), `: ${p.n_on} of ${p.n_front} trials that the model expects on the front lie at its ${p.leans_on === 'min' ? 'lower' : 'upper'} bound; try ${p.leans_on} = ${fmt.exact(p.try)}: continue with --sweep.${p.key}.${p.leans_on} ${fmt.exact(p.try)}, the trials so far count.`)),
      !leaning.length && h('p', null, 'The front leans on no bound that could be wider.'),
      insight.score_note && h('p.soft', null, `${data.metric}: ${insight.score_note}.`), insight.cost_note && h('p.soft', null, `Cost: ${insight.cost_note}.`),
      insight.score_noise_sd > 0 && h('p', null, `Between seeds one run varies by ± ${fmt.number(Number(insight.score_noise_sd.toPrecision(2)))} (one standard deviation): a difference below about ${fmt.number(Number((2.8 * insight.score_noise_sd).toPrecision(2)))} between two single runs says little.`),
      h('p.soft', null, 'Importance is over the whole search space; near the front another parameter may matter more: the slices below go through one of its trials.'));
    await drawSlices(turn);
  }

  async function drawSlices(turn) {
    const slices = await Promise.all(data.params.map((p) => getModel(studyPath(data.name, '/model/slice'), {param: p.key, at: choose.value}, ctx.signal)));
    if (turn !== draw.turn) return;
    const range = scoreRange(data, slices.filter((s) => s.points));
    const through = slices.find((s) => s.at !== undefined)?.at;
    fill(atNote, through !== undefined && ['The other parameters stay as in ', h('a', {href: trialUrl(data.name, through)}, `trial ${through}`), ', whose value is dashed; dots are the scores of all trials.']);
    const charts = data.params.map((p) => h('div.chart'));
    fill(slicesEl, data.params.map((p, k) => h('div.slice.model', null, h('h3', null, p.key, ' ', h('small', null, p.scale === 'pow2' ? 'powers of two' : p.scale === 'categorical' ? 'choices' : p.scale)), charts[k])));
    for (let k = 0; k < slices.length && turn === draw.turn; k++) if (slices[k].points) shown.push(await showSlice(charts[k], data, data.params[k], slices[k], range, selection));
  }

  await draw();
  return {model: draw, selected() { for (const chart of shown) chart.mark?.(); over.selected(); }, destroy() { clear(); over.destroy(); }};
}
