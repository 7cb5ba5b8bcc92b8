/* seeds.js - runs of one config under several seeds: a dot for each, the 95 % bands of their mean and of their interquartile mean. */
import * as fmt from '../format.js';

const NS = 'http://www.w3.org/2000/svg', HEIGHT = 74, LEFT = 74, RIGHT = 14;

function svg(name, attrs, text) {
  const el = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attrs)) el.setAttribute(key, value);
  if (text !== undefined) el.textContent = text;
  return el;
}

/* answer: of /trials/N/seeds. */
export function seedsChart(answer, metric, width = 420) {
  const rows = answer.rows.filter(([, state, , score]) => state === 'done' && Number.isFinite(score));
  const q = answer.all, values = [...rows.map((r) => r[3]), q.mean_lo, q.mean_hi, q.iqm_lo, q.iqm_hi].filter(Number.isFinite);
  const lo = Math.min(...values), hi = Math.max(...values), pad = hi > lo ? (hi - lo) * 0.05 : Math.abs(hi) * 0.1 || 0.5;
  const x = (v) => LEFT + (width - LEFT - RIGHT) * (v - lo + pad) / (hi - lo + 2 * pad);
  const el = svg('svg', {viewBox: `0 0 ${width} ${HEIGHT}`, class: 'seeds-chart', role: 'img',
    'aria-label': `${metric} of ${rows.length} runs: mean ${fmt.number(q.mean)}, interquartile mean ${fmt.number(q.iqm)}`});
  const band = (y, label, at, from, to) => {
    el.append(svg('text', {x: 0, y: y + 4}, label));
    if (Number.isFinite(from)) el.append(svg('rect', {x: x(from), y: y - 5, width: Math.max(1, x(to) - x(from)), height: 10, class: 'band'}));
    if (Number.isFinite(at)) el.append(svg('line', {x1: x(at), x2: x(at), y1: y - 8, y2: y + 8, class: 'at'}));
  };
  el.append(svg('text', {x: 0, y: 14}, 'runs'));
  for (const [trial, , seed, score] of rows) {
    const dot = svg('circle', {cx: x(score), cy: 10, r: 4, class: trial === rows[0][0] ? 'first' : 'run'});
    dot.append(svg('title', {}, `trial ${trial}, seed ${seed}: ${fmt.number(score)}`));
    el.append(dot);
  }
  band(32, 'mean', q.mean, q.mean_lo, q.mean_hi);
  band(54, 'IQ mean', q.iqm, q.iqm_lo, q.iqm_hi);
  el.append(svg('text', {x: LEFT, y: HEIGHT - 1, class: 'soft'}, fmt.number(lo)), svg('text', {x: width - RIGHT, y: HEIGHT - 1, 'text-anchor': 'end', class: 'soft'}, fmt.number(hi)));
  return el;
}

/* A small curve: [[x, y], ...]. */
export function sparkline(points, width = 130, height = 26) {
  const el = svg('svg', {viewBox: `0 0 ${width} ${height}`, class: 'spark', 'aria-hidden': 'true', width, height});
  if (points.length < 2) return el;
  const [x0, x1] = [points[0][0], points.at(-1)[0]], ys = points.map((p) => p[1]), lo = Math.min(...ys), hi = Math.max(...ys);
  const at = ([x, y]) => `${(2 + (width - 4) * (x - x0) / (x1 - x0 || 1)).toFixed(1)},${(height - 3 - (height - 6) * (hi > lo ? (y - lo) / (hi - lo) : 0.5)).toFixed(1)}`;
  el.append(svg('polyline', {points: points.map(at).join(' ')}));
  return el;
}
