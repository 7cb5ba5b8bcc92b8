/* study_params.js - the parameters: importance for score and cost, and the score along each parameter. */
import {getModel, studyPath} from './api.js';
import {card, empty, fill, h} from './dom.js';
import {setState, state, studyUrl, trialUrl} from './app.js';
import {showImportance} from './charts/importance.js';
import {showSlice} from './charts/slice.js';
import * as fmt from './format.js';

function scoreRange(data, slices) {
  const scores = data.plotted.map((i) => data.score[i]).sort((a, b) => a - b);
  if (!scores.length) return [0, 1];
  const tenth = Math.floor(scores.length / 20);
  let lo = scores[data.maximize ? tenth : 0], hi = scores[data.maximize ? scores.length - 1 : scores.length - 1 - tenth];
  for (const s of slices) for (const p of s.points) [lo, hi] = [Math.min(lo, p.score), Math.max(hi, p.score)];
  const margin = hi > lo ? (hi - lo) * 0.06 : Math.abs(hi) * 0.1 || 0.5;
  return [lo - margin, hi + margin];
}

export async function show(el, data, ctx) {
  const importanceEl = h('div.chart'), slicesEl = h('div.slices'), notes = h('div.prose'), atNote = h('p.soft.small');
  const at = state().get('at') || 'recommended';
  const choose = h('select', {'aria-label': 'where the slices go through', onchange: (event) => { setState({at: event.target.value === 'recommended' ? null : event.target.value}); draw(); }},
    [['recommended', 'recommended trial'], ['best-run', 'best run'], ['knee', 'knee']].map(([value, text]) => h('option', {value}, text)),
    /^\d+$/.test(at) && h('option', {value: at}, `trial ${at}`));
  choose.value = at;
  const shown = [];
  fill(el, h('div.halves', null, card('What matters', importanceEl, {note: 'share of variance explained by a parameter by itself; line: two standard deviations'}), card('Bounds and notes', notes)),
    card('Score along each parameter', [atNote, slicesEl], {note: 'as the model sees it; band: 95 %', extra: h('label.soft.small', null, 'through the ', choose)}));
  const clear = () => { for (const chart of shown.splice(0)) chart.destroy(); };

  async function draw() {
    const turn = draw.turn = (draw.turn || 0) + 1;
    if (!importanceEl.childElementCount) fill(importanceEl, h('p.soft', null, 'The model is being computed…'));
    const insight = await getModel(studyPath(data.name, '/insight'), null, ctx.signal);
    if (turn !== draw.turn) return;
    clear();
    if (insight.model === 'none' || !insight.params) {
      fill(importanceEl, empty('No model yet.', h('p.soft', null, insight.note || 'It comes with a few finished trials.')));
      fill(notes);
      fill(slicesEl);
      return;
    }
    fill(importanceEl);
    shown.push(await showImportance(importanceEl, insight, data.metric));
    const key = (mark, text) => h('span.key', null, h(`i.mark.${mark}`, {'aria-hidden': 'true'}), text);
    importanceEl.prepend(h('div.legend', null, key('bar-score', data.metric), key('bar-cost', 'cost')));
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
    for (let k = 0; k < slices.length && turn === draw.turn; k++) if (slices[k].points) shown.push(await showSlice(charts[k], data, data.params[k], slices[k], range));
  }

  await draw();
  return {model: draw, destroy: clear};
}
