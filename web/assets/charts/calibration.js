/* calibration.js - fresh seeds against what was predicted before them: on the diagonal the prediction was right, and 95 % of the
 * intervals should hold their run. */
import {colors, mount} from './vega.js';
import {h} from '../dom.js';

/* rows: [{predicted, lo, hi, score}] */
export async function showCalibration(el, rows, metric) {
  const c = colors(), values = rows.map((r) => ({...r, inside: r.score >= r.lo && r.score <= r.hi}));
  const all = rows.flatMap((r) => [r.predicted, r.lo, r.hi, r.score]), lo = Math.min(...all), hi = Math.max(...all), pad = (hi - lo) * 0.04 || 0.5;
  const domain = [lo - pad, hi + pad], layer = h('div');
  el.replaceChildren(layer);
  const x = {scale: 'x', field: 'predicted'}, y = (field) => ({scale: 'y', field});
  return mount(layer, {
    height: 300,
    data: [{name: 'rows', values}, {name: 'line', values: domain.map((v) => ({v}))}],
    scales: [{name: 'x', type: 'linear', domain, range: 'width', zero: false}, {name: 'y', type: 'linear', domain, range: 'height', zero: false}],
    axes: [{orient: 'bottom', scale: 'x', title: `predicted ${metric}`, titleAnchor: 'end', tickCount: 6}, {orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 6, title: 'fresh seed'}],
    marks: [
      {type: 'line', from: {data: 'line'}, encode: {update: {x: {scale: 'x', field: 'v'}, y: {scale: 'y', field: 'v'}, stroke: {value: c.dim}, strokeDash: {value: [5, 4]}}}},
      {type: 'rule', from: {data: 'rows'}, encode: {update: {x, y: y('lo'), y2: y('hi'), stroke: {value: c.main}, strokeWidth: {value: 1.3}, strokeOpacity: {value: 0.35}}}},
      {type: 'symbol', from: {data: 'rows'}, encode: {update: {x, y: y('score'), size: {value: 55}, shape: [{test: 'datum.inside', value: 'circle'}, {value: 'cross'}],
        fill: [{test: 'datum.inside', value: c.main}, {value: c.bad}]}}},
    ],
  }, `${rows.length} fresh runs against the predicted ${metric}, ${values.filter((r) => r.inside).length} of them inside their interval`);
}
