/* lines.js - curves over a running quantity: one line or band for each series. Series differ by colour and dash. */
import {h} from '../dom.js';
import {colors, DASHES, mount, SECONDS_LABEL, timeTicks} from './vega.js';

/* series: [{label, x: [], y: [], lo: [], hi: [], step}]; opts: {xTitle, yTitle, time (x is seconds), dates (x is ms), whole (x is a number of things), height,
 * zero, points}. Returns a function that destroys it. */
export async function showLines(el, series, {xTitle, yTitle, time, dates, whole, height = 240, zero, label} = {}) {
  const c = colors();
  const clean = series.map((s, k) => ({...s, color: c.series[k % c.series.length], dash: DASHES[Math.floor(k / 1) % DASHES.length]}));
  const rows = (s) => s.x.map((x, i) => ({x, y: s.y[i], lo: s.lo?.[i] ?? s.y[i], hi: s.hi?.[i] ?? s.y[i]})).filter((r) => Number.isFinite(r.x) && Number.isFinite(r.y) && r.y !== null);
  const data = clean.map((s, k) => ({name: `s${k}`, values: rows(s)}));
  const all = data.flatMap((d) => d.values);
  if (!all.length) {
    el.replaceChildren(h('p.soft', null, 'Nothing to show yet.'));
    return {destroy() {}};
  }
  const min = (f) => all.reduce((m, r) => Math.min(m, f(r)), Infinity), max = (f) => all.reduce((m, r) => Math.max(m, f(r)), -Infinity);
  const y = [min((r) => r.lo), max((r) => r.hi)], pad = (y[1] - y[0]) * 0.05 || Math.abs(y[1]) * 0.1 || 0.5;
  const yDomain = [zero ? Math.min(0, y[0]) : y[0] - pad, y[1] + pad], xDomain = dates ? [min((r) => r.x), max((r) => r.x)] : [Math.min(0, min((r) => r.x)), max((r) => r.x)];
  const title = label || `${yTitle || ''} over ${xTitle}: ${series.map((s) => s.label).filter(Boolean).join(', ')}`;
  const xLabels = time ? {labels: {update: {text: {signal: SECONDS_LABEL}}}} : dates ? {labels: {update: {text: {signal: "timeFormat(datum.value, '%H:%M')"}}}} : {labels: {update: {text: {signal: "format(datum.value, '~s')"}}}};
  const ticks = time ? timeTicks(xDomain[1], el.clientWidth < 420 ? 4 : 7) : undefined;
  const marks = clean.flatMap((s, k) => [
    ...(s.lo ? [{type: 'area', from: {data: `s${k}`}, encode: {update: {x: {scale: 'x', field: 'x'}, y: {scale: 'y', field: 'lo'}, y2: {scale: 'y', field: 'hi'}, fill: {value: s.color}, fillOpacity: {value: 0.15}}}}] : []),
    {type: 'line', from: {data: `s${k}`}, encode: {update: {x: {scale: 'x', field: 'x'}, y: {scale: 'y', field: 'y'}, interpolate: {value: s.step ? 'step-after' : 'linear'}, stroke: {value: s.color}, strokeWidth: {value: 1.9}, strokeDash: {value: s.dash}}}},
    ...(data[k].values.length === 1 ? [{type: 'symbol', from: {data: `s${k}`}, encode: {update: {x: {scale: 'x', field: 'x'}, y: {scale: 'y', field: 'y'}, fill: {value: s.color}, size: {value: 50}}}}] : []),
  ]);
  const layer = h('div');
  el.replaceChildren(layer);
  return mount(layer, {
    height, data,
    scales: [{name: 'x', type: dates ? 'time' : 'linear', domain: xDomain, range: 'width', zero: false}, {name: 'y', type: 'linear', domain: yDomain, range: 'height', zero: false, nice: true}],
    axes: [{orient: 'bottom', scale: 'x', title: xTitle, titleAnchor: 'end', tickCount: el.clientWidth < 420 ? 4 : 7, ...(whole ? {tickMinStep: 1} : {}), ...(ticks ? {values: ticks} : {}), encode: xLabels},
      {orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 5, ...(yTitle ? {title: yTitle} : {})}],
    marks: [{type: 'group', encode: {update: {width: {signal: 'width'}, height: {signal: 'height'}}}, marks}],
  }, title);
}

export function seriesKey(k, text) {
  const mark = h('i.mark.line', {'aria-hidden': 'true'}), c = colors();
  mark.style.borderTopColor = c.series[k % c.series.length];
  mark.style.borderTopStyle = ['solid', 'dashed', 'dotted', 'dashed', 'dotted', 'dashed'][k % 6];
  return h('span.key', null, mark, text);
}
