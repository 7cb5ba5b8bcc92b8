/* lines.js - curves over a running quantity: one line or band for each series. Series differ by colour and dash. */
import {h} from '../dom.js';
import * as fmt from '../format.js';
import {followX, nearest, tipRow} from './hover.js';
import {colors, DASHES, mount, SECONDS_LABEL, timeTicks} from './vega.js';

/* What curves may be drawn over. */
export const OVER = [['env_steps', 'Steps'], ['wall_s', 'Seconds']];

/* series: [{label, x: [], y: [], lo: [], hi: [], step}]; opts: {xTitle, yTitle, time (x is seconds), dates (x is ms), whole (x counts things),
 * height, zero}. Returns {destroy()}; a chart that el has already, of as many series, shows the new ones and is returned again. */
export async function showLines(el, series, options = {}) {
  const now = el.lines?.alive ? el.lines : null, next = prepare(el, series, options);
  if (now && next && now.shape === next.shape) {
    now.show(next);
    return now;
  }
  now?.destroy();
  if (!next) {
    el.replaceChildren(h('p.soft', null, 'Nothing to show yet.'));
    return {destroy() {}};
  }
  const layer = h('div.lines');
  el.replaceChildren(layer);
  const lines = el.lines = {alive: true, shape: next.shape, now: next, destroy() { lines.alive = false; lines.chart?.destroy(); }};
  lines.show = (p) => {
    lines.now = p;
    if (!lines.chart) return;
    layer.setAttribute('aria-label', p.title);
    p.data.forEach((d) => lines.chart.view.data(d.name, d.values));
    lines.chart.view.signal('xd', p.xDomain).signal('yd', p.yDomain);
    if (p.ticks) lines.chart.view.signal('ticks', p.ticks);
    lines.chart.view.runAsync();
  };
  lines.chart = await mount(layer, specOf(next, options), next.title);
  if (!lines.alive) lines.chart.destroy();
  else if (lines.now !== next) lines.show(lines.now);
  followX(layer, lines.chart.view, (x) => describe(lines.now, options, Number(x)));
  return lines;
}

/* What is drawn, and the key of its shape; null: nothing. */
function prepare(el, series, {xTitle, yTitle, time, dates, zero, label}) {
  const c = colors();
  const clean = series.map((s, k) => ({...s, color: c.series[k % c.series.length], dash: DASHES[k % DASHES.length]}));
  const rows = (s) => s.x.map((x, i) => ({x, y: s.y[i], lo: s.lo?.[i] ?? s.y[i], hi: s.hi?.[i] ?? s.y[i]})).filter((r) => Number.isFinite(r.x) && Number.isFinite(r.y) && r.y !== null);
  const data = clean.map((s, k) => ({name: `s${k}`, values: rows(s)})), all = data.flatMap((d) => d.values);
  if (!all.length) return null;
  const min = (f) => all.reduce((m, r) => Math.min(m, f(r)), Infinity), max = (f) => all.reduce((m, r) => Math.max(m, f(r)), -Infinity);
  const y = [min((r) => r.lo), max((r) => r.hi)], pad = (y[1] - y[0]) * 0.05 || Math.abs(y[1]) * 0.1 || 0.5;
  const xDomain = dates ? [min((r) => r.x), max((r) => r.x)] : [Math.min(0, min((r) => r.x)), max((r) => r.x)];
  return {series: clean, data, xDomain, yDomain: [zero ? Math.min(0, y[0]) : y[0] - pad, y[1] + pad],
    ticks: time ? timeTicks(xDomain[1], el.clientWidth < 420 ? 4 : 7) : undefined, narrow: el.clientWidth < 420,
    title: label || `${yTitle || ''} over ${xTitle}: ${series.map((s) => s.label).filter(Boolean).join(', ')}`,
    shape: JSON.stringify([xTitle, yTitle, !!time, !!dates, clean.map((s, k) => [s.color, s.dash, !!s.lo, !!s.step, data[k].values.length === 1]), el.clientWidth < 420])};
}

function specOf({series, data, xDomain, yDomain, ticks, narrow}, {xTitle, yTitle, time, dates, whole, height = 240}) {
  const xLabels = time ? {labels: {update: {text: {signal: SECONDS_LABEL}}}} : dates ? {labels: {update: {text: {signal: "timeFormat(datum.value, '%H:%M')"}}}} : {labels: {update: {text: {signal: "format(datum.value, '~s')"}}}};
  const x = {scale: 'x', field: 'x'}, y = (field) => ({scale: 'y', field});
  const marks = series.flatMap((s, k) => [
    ...(s.lo ? [{type: 'area', from: {data: `s${k}`}, encode: {update: {x, y: y('lo'), y2: y('hi'), fill: {value: s.color}, fillOpacity: {value: 0.15}}}}] : []),
    {type: 'line', from: {data: `s${k}`}, encode: {update: {x, y: y('y'), interpolate: {value: s.step ? 'step-after' : 'linear'}, stroke: {value: s.color}, strokeWidth: {value: 1.9}, strokeDash: {value: s.dash}}}},
    ...(data[k].values.length === 1 ? [{type: 'symbol', from: {data: `s${k}`}, encode: {update: {x, y: y('y'), fill: {value: s.color}, size: {value: 50}}}}] : []),
  ]);
  return {
    height, data, signals: [{name: 'xd', value: xDomain}, {name: 'yd', value: yDomain}, ...(ticks ? [{name: 'ticks', value: ticks}] : [])],
    scales: [{name: 'x', type: dates ? 'time' : 'linear', domain: {signal: 'xd'}, range: 'width', zero: false}, {name: 'y', type: 'linear', domain: {signal: 'yd'}, range: 'height', zero: false, nice: true}],
    axes: [{orient: 'bottom', scale: 'x', title: xTitle, titleAnchor: 'end', tickCount: narrow ? 4 : 7, labelFlush: true, ...(whole ? {tickMinStep: 1} : {}), ...(ticks ? {values: {signal: 'ticks'}} : {}), encode: xLabels},
      {orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 5, ...(yTitle ? {title: yTitle} : {})}],
    marks: [{type: 'group', encode: {update: {width: {signal: 'width'}, height: {signal: 'height'}}}, marks}],
  };
}

/* The values of all series at the place that is nearest to x. */
function describe({series, data}, {time, dates}, x) {
  const near = data.map((d) => d.values[nearest(d.values.map((r) => r.x), x)]);
  const at = near.filter(Boolean).reduce((a, r) => (Math.abs(r.x - x) < Math.abs(a - x) ? r.x : a), Infinity);
  if (!Number.isFinite(at)) return null;
  /* a step holds its value until the next; a curve that ends before here has none */
  const value = (s, k) => (s.step ? data[k].values.findLast((r) => r.x <= at) : near[k] && at <= data[k].values.at(-1).x && at >= data[k].values[0].x ? near[k] : null);
  const rows = series.map((s, k) => [s, value(s, k)]).filter(([, r]) => r);
  return {x: at, parts: [h('div.tip-head', null, time ? fmt.duration(at) : dates ? fmt.time(at) : fmt.number(at)),
    rows.slice(0, 12).map(([s, r]) => tipRow(s.label || '', s.lo ? `${fmt.number(r.y)} (${fmt.interval(r.lo, r.hi)})` : fmt.number(r.y)))]};
}

export function seriesKey(k, text) {
  const mark = h('i.mark.line', {'aria-hidden': 'true'}), c = colors();
  mark.style.borderTopColor = c.series[k % c.series.length];
  mark.style.borderTopStyle = ['solid', 'dashed', 'dotted', 'dashed', 'dotted', 'dashed'][k % 6];
  return h('span.key', null, mark, text);
}
