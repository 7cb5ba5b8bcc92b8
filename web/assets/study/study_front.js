/* study_front.js - the front and the pick. */
import {getModel, studyPath} from '../api.js';
import {add, card, command, empty, fill, h, renew, shellWord, table} from '../dom.js';
import {go, setState, state, studyUrl, trialUrl} from '../address.js';
import {FrontChart} from '../charts/front.js';
import {Pick} from './pick.js';
import * as fmt from '../format.js';

function parseZoom(text) {
  const v = (text || '').split(',').map(Number);
  return v.length === 4 && v.every(Number.isFinite) && v[0] > 0 && v[1] > v[0] && v[3] > v[2] ? {x: [v[0], v[1]], y: [v[2], v[3]]} : null;
}

const zoomText = (d) => (d ? [...d.x, ...d.y].map((v) => Number(v.toPrecision(6))).join(',') : null);

/* The trials of the front, cheapest first: expected score, interval, and the run's own score. */
function frontTable(data) {
  const heads = [`expected ${data.metric}`, '95 %', 'seen', 'its run', 'cost', ...(data.objective ? [data.objective.metric] : []), 'env steps', ...data.params.map((p) => p.key.split('.').at(-1).replaceAll('_', '_\u200b'))];
  return table(['trial', ...heads.map((num) => ({num}))],
    data.front.map((i) => {
      const b = data.beliefs.get(i);
      return h(i === data.best || i === data.knee ? 'tr.special' : 'tr', {'data-key': i},
        h('td', null, h('a', {href: trialUrl(data.name, i)}, `#${i}`), i === data.best && h('span.tag', null, 'best'), i === data.knee && h('span.tag', null, 'knee')),
        h('td.num', null, fmt.number(b.score)), h('td.num', null, b.known ? fmt.interval(b.lo, b.hi) : '–'),
        h('td.num', {title: fmt.seeds(b.seeds, b.mean)}, b.seeds > 1 ? `${b.seeds} seeds` : 'once'),
        h('td.num.soft', null, fmt.number(data.score[i])),
        h('td.num', null, fmt.cost(b.cost, data.costUnit)), data.objective && h('td.num', null, fmt.number(b.objective)), h('td.num', null, fmt.compact(data.column.env_steps[i])),
        data.params.map((p) => h('td.num', null, data.paramText(p.key, i))));
    }), {tall: true, caption: 'Trials on the front, cheapest first'});
}

/* How far single runs can be relied on, and where the search could be wider: in words. What to take and whether to continue stands in the briefing. */
function verdict(data, insight) {
  const lines = [], store = ` --store ${shellWord(data.store)}`;
  const c = data.counts, bad = c.failed + c.lost;
  if (insight?.note) lines.push(h('p', null, `No model yet: ${insight.note}.`));
  if (insight?.score_noise_sd > 0)
    lines.push(h('p', null, `One run varies by ± ${fmt.number(Number(insight.score_noise_sd.toPrecision(2)))} between seeds (one standard deviation), so the best score is partly luck: compare the expected scores, not single runs.`));
  for (const p of insight?.params ?? [])
    if (p.leans_on)
      lines.push(h('p', null, `${p.n_on} of ${p.n_front} trials that the model expects on the front lie at the ${p.leans_on === 'min' ? 'lower' : 'upper'} bound of `, h('b', null, p.key), `: better ones may lie beyond; try ${p.leans_on} = ${fmt.exact(p.try)}, with all trials so far:`),
        command(`${data.study.resume_command} --sweep.${p.key}.${p.leans_on} ${fmt.exact(p.try)}`));
  if (bad > 0 && bad >= 0.1 * data.n)
    lines.push(h('p', null, `${bad} of ${data.n} trials failed or were lost; `, h('a', {href: studyUrl(data.name, {tab: 'progress'})}, 'see why'), '.'));
  return [lines, h('p.soft', null, 'All of this as one file:'), command(`trawl report ${shellWord(data.name)}${store} -o report.html`)];
}

export async function show(el, data, ctx) {
  const {selection} = ctx, chartEl = h('div.front-chart'), pickEl = h('div'), tableEl = h('div'), verdictEl = h('div.prose');
  const hint = h('p.soft.small.hint', null, 'Drag to select, ctrl-wheel to zoom, shift-drag to move, click a trial to open it; arrow keys walk along the front.');
  const axis = h('select', {'aria-label': 'the vertical axis', onchange: () => { setState({axis: axis.value === 'score' ? null : axis.value, zoom: null}); draw(); }},
    h('option', {value: 'score'}, data.metric), data.objective && h('option', {value: 'objective'}, data.objective.metric));
  axis.value = data.objective && state().get('axis') === 'objective' ? 'objective' : 'score';
  const tools = h('div.tools', null, data.objective && axis,
    h('button.small', {type: 'button', title: 'zoom in (+)', 'aria-label': 'zoom in', onclick: () => chart?.zoomBy?.(0.7)}, '+'),
    h('button.small', {type: 'button', title: 'zoom out (-)', 'aria-label': 'zoom out', onclick: () => chart?.zoomBy?.(1 / 0.7)}, '−'),
    h('button.small', {type: 'button', title: 'zoom to the chosen range', onclick: () => { const range = ranges(); if (range) chart?.setZoom?.({x: range.cost, y: range.score}); }}, 'To selection'),
    h('button.small', {type: 'button', title: 'whole front (0, double click)', onclick: () => chart?.setZoom?.(null)}, 'Reset'));
  const later = (title, what) => { const section = card(title, what); section.classList.add('later'); return section; };
  fill(el, h('div.columns.front-page', null,
    h('div', null, card('Cost against score', [chartEl, hint], {extra: tools, id: 'front'}), later('Trials on the front', tableEl)),
    h('div', null, card('Pick from the front', pickEl, {id: 'pick'}), later('What to make of it', verdictEl))));
  let chart = null, drawn = '', model = null, insight = null;
  const pick = new Pick(pickEl, data, ctx, (choice) => chart?.setPick?.(axis.value === 'score' || choice?.score === undefined ? choice : null));

  /* What is dragged over the chart becomes ranges of the selection. */
  function select(range) {
    const filters = new Map([...selection.filters].filter(([key]) => key !== 'cost' && key !== 'score' && key !== 'objective'));
    if (range) filters.set('cost', range.cost).set(axis.value, range.score);
    selection.filters = filters;
    selection.change();
  }
  function ranges() {
    const {filters} = selection;
    return filters.has('cost') && filters.has(axis.value) ? {cost: filters.get('cost'), score: filters.get(axis.value)} : null;
  }
  async function draw() {
    const zoom = parseZoom(state().get('zoom')), {mask, colour} = selection;
    if (chart && data.plotted.length && axis.value === 'score' && drawn === 'score') {
      Object.assign(chart, {mask, colour});
      await chart.update(model);
      chart.setPick(pick.choice);
      return;
    }
    chart?.destroy();
    if (!data.plotted.length) {
      chart = null;
      fill(chartEl, empty(data.n ? 'No trial is done yet: there is no front.' : 'No trial yet.', h('p.soft', null, 'The front appears here as trials end.')));
      return;
    }
    const byScore = axis.value === 'score';
    drawn = axis.value;
    chart = new FrontChart(chartEl, byScore ? data : data.byObjective(), {model: byScore ? model : null, zoom, mask, colour, on: {
      open: (i) => go(trialUrl(data.name, data.number[i])),
      select, zoom: (domain) => setState({zoom: zoomText(domain)})}});
    await chart.show();
    performance.mark('front drawn');
    chart.setPick(byScore || pick.choice?.score === undefined ? pick.choice : null);
    chart.setBrush(ranges());
  }
  function texts() {
    renew(tableEl, data.front.length ? frontTable(data) : empty('Nothing here yet.'));
    renew(verdictEl, verdict(data, insight));
  }
  async function readModel() {
    const [answers, predicted] = await Promise.all([
      getModel(studyPath(data.name, '/insight'), null, ctx.signal),
      getModel(studyPath(data.name, '/model/front'), null, ctx.signal)]);
    insight = answers.model === 'none' ? {note: answers.note} : answers;
    const points = (predicted.points ?? []).filter((p) => p.cost > 0 && Number.isFinite(p.score));
    model = points.length > 1 ? {cost: points.map((p) => p.cost), mean: points.map((p) => p.score), lo: points.map((p) => p.score_lo), hi: points.map((p) => p.score_hi)} : null;
  }

  await draw();
  texts();
  pick.update();
  const withModel = () => readModel().then(() => { texts(); pick.update(); return draw(); }).catch((problem) => {
    if (!ctx.signal.aborted) add(verdictEl, h('p.warn', null, `The model's part is missing: ${problem.message}`));
  });
  withModel();
  return {
    async update() { await draw(); texts(); pick.update(); },
    model: withModel,
    selected() { chart?.setSelection(selection.mask, selection.colour); chart?.setBrush(ranges()); },
    destroy() { chart?.destroy(); pick.destroy(); },
  };
}
