/* fronts.js - the believed fronts of several studies over each other, and for studies of one search under several seeds the scores that a
 * quarter, half and three quarters of them attain at each cost. */
import {colors, DASHES, logTicks, mount, SECONDS_LABEL} from './vega.js';
import {h} from '../dom.js';

/* studies: of /compare, in its order; attained: its rows. */
export async function showFronts(el, answer) {
  const c = colors(), isTime = answer.cost_unit === 's', up = answer.direction === 'maximize';
  const points = answer.studies.flatMap((s, k) => s.front.map((p) => ({...p, k}))), groups = [...new Set(answer.attained.map((r) => r.group))];
  if (!points.length) { el.replaceChildren(h('p.soft', null, 'None of these studies has a front yet.')); return {destroy() {}}; }
  const costs = points.map((p) => p.cost), scores = points.flatMap((p) => [p.score, p.lo, p.hi]).filter(Number.isFinite);
  const [lo, hi] = [Math.min(...costs), Math.max(...costs)], factor = hi > lo * 1.001 ? (hi / lo) ** 0.06 : 1.6, xd = [lo / factor, hi * factor];
  const [sl, sh] = [Math.min(...scores), Math.max(...scores)], pad = (sh - sl) * 0.06 || 0.5;
  const end = up ? Math.max : Math.min, name = (k) => answer.studies[k].study;
  const steps = (k) => {
    let best = null;
    const rows = [];
    for (const p of answer.studies[k].front) {
      best = best === null ? p.score : end(best, p.score);
      rows.push({cost: p.cost, score: best});
    }
    return rows.length ? [...rows, {cost: xd[1], score: rows.at(-1).score}] : rows;
  };
  const x = {scale: 'x', field: 'cost'}, y = (field) => ({scale: 'y', field}), layer = h('div'), data = [{name: 'points', values: points}], marks = [];
  groups.forEach((group, g) => {
    const color = c.series[answer.studies.findIndex((s) => s.study === group) % c.series.length];
    const rows = answer.attained.filter((r) => r.group === group), whole = rows.filter((r) => r.by_three_quarters !== null);
    data.push({name: `band${g}`, values: whole.length ? [...whole, {...whole.at(-1), cost: xd[1]}] : []}, {name: `half${g}`, values: rows.filter((r) => r.by_half !== null)});
    marks.push({type: 'area', from: {data: `band${g}`}, encode: {update: {x, y: y('by_quarter'), y2: y('by_three_quarters'), interpolate: {value: 'step-after'}, fill: {value: color}, fillOpacity: {value: 0.16}}}},
      {type: 'line', from: {data: `half${g}`}, encode: {update: {x, y: y('by_half'), interpolate: {value: 'step-after'}, stroke: {value: color}, strokeWidth: {value: 2.6}}}});
  });
  answer.studies.forEach((s, k) => {
    const color = c.series[k % c.series.length], faint = groups.includes(s.group);
    data.push({name: `steps${k}`, values: steps(k)}, {name: `at${k}`, values: s.front});
    marks.push({type: 'line', from: {data: `steps${k}`}, encode: {update: {x, y: y('score'), interpolate: {value: 'step-after'}, stroke: {value: color}, strokeWidth: {value: faint ? 1.2 : 2}, strokeDash: {value: DASHES[k % DASHES.length]}, strokeOpacity: {value: faint ? 0.7 : 1}}}},
      {type: 'rule', from: {data: `at${k}`}, encode: {update: {x, y: y('lo'), y2: y('hi'), stroke: {value: color}, strokeOpacity: {value: 0.45}}}},
      {type: 'symbol', from: {data: `at${k}`}, encode: {update: {x, y: y('score'), size: {value: 45}, fill: [{test: 'datum.n_seeds > 1', value: color}, {value: c.card}], stroke: {value: color}, strokeWidth: {value: 1.6}}}});
  });
  let ticks = logTicks(xd[0], xd[1], el.clientWidth < 480 ? 4 : 8, isTime);
  if (ticks.length < 2) ticks = [lo, hi].map((v) => Number(v.toPrecision(2)));
  el.replaceChildren(layer);
  return mount(layer, {
    height: 380, data,
    scales: [{name: 'x', type: 'log', domain: xd, range: 'width', zero: false}, {name: 'y', type: 'linear', domain: [sl - pad, sh + pad], range: 'height', zero: false}],
    axes: [{orient: 'bottom', scale: 'x', title: answer.cost_unit === 'steps' ? 'cost in env steps, log scale' : 'cost of a trial, log scale', titleAnchor: 'end', values: ticks,
      encode: {labels: {update: {text: {signal: isTime ? SECONDS_LABEL : "format(datum.value, '~s')"}}}}},
    {orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 6, title: `expected ${answer.metric}`}],
    marks: [{type: 'group', encode: {update: {width: {signal: 'width'}, height: {signal: 'height'}, clip: {value: true}}}, marks}],
  }, `Fronts of ${answer.studies.map((s, k) => name(k)).join(', ')} as expected, over cost`);
}
