/* plain.js - lines and bands as plain SVG, for a trawl built without Vega; what lines.js has worked out is drawn here.
 * Looks are attributes, never inline style, which the pages forbid. */
import {colors, timeTicks} from './vega.js';
import * as fmt from '../format.js';

const LEFT = 56, RIGHT = 12, TOP = 10;

function svg(name, attrs, text) {
  const el = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attrs)) el.setAttribute(key, value);
  if (text !== undefined) el.textContent = text;
  return el;
}

/* About n round values from lo to hi. */
function roundTicks(lo, hi, n) {
  const rough = (hi - lo) / n, unit = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((m) => m * unit >= rough) * unit;
  const ticks = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(10)));
  return ticks;
}

/* series: [{rows: [{x, y, lo, hi}], color, dash, step, band}] */
export function showPlain(el, series, {xDomain, yDomain, height, xTitle, yTitle, time, label}) {
  const c = colors(), width = Math.max(240, el.clientWidth), few = width < 420 ? 4 : 7, BOTTOM = xTitle ? 40 : 24;
  const x = (v) => LEFT + (width - LEFT - RIGHT) * (v - xDomain[0]) / (xDomain[1] - xDomain[0] || 1);
  const y = (v) => height - BOTTOM - (height - TOP - BOTTOM) * (v - yDomain[0]) / (yDomain[1] - yDomain[0] || 1);
  const root = svg('svg', {viewBox: `0 0 ${width} ${height}`, width: '100%', role: 'img', 'aria-label': label, 'font-size': 12, fill: c.soft});
  const at = (v) => v.toFixed(1);
  for (const v of roundTicks(...yDomain, height < 200 ? 4 : 5)) {
    root.append(svg('line', {x1: LEFT, x2: width - RIGHT, y1: at(y(v)), y2: at(y(v)), stroke: c.line}),
      svg('text', {x: LEFT - 7, y: at(y(v) + 4), 'text-anchor': 'end'}, fmt.number(v)));
  }
  for (const v of time ? timeTicks(xDomain[1], few) : roundTicks(...xDomain, few))
    root.append(svg('text', {x: at(x(v)), y: height - BOTTOM + 17, 'text-anchor': 'middle'}, time ? fmt.duration(v) : Math.abs(v) >= 1000 ? fmt.compact(v) : fmt.number(v)));
  root.append(svg('line', {x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM, stroke: c.axis}));
  if (xTitle) root.append(svg('text', {x: width - RIGHT, y: height - 6, 'text-anchor': 'end'}, xTitle));
  if (yTitle) root.append(svg('text', {x: LEFT + 6, y: TOP + 6}, yTitle));
  for (const s of series.filter((one) => one.rows.length)) {
    const points = s.rows.map((r) => `${at(x(r.x))} ${at(y(r.y))}`);
    if (s.band)
      root.append(svg('path', {d: `M${s.rows.map((r) => `${at(x(r.x))} ${at(y(r.hi))}`).join('L')}L${[...s.rows].reverse().map((r) => `${at(x(r.x))} ${at(y(r.lo))}`).join('L')}Z`, fill: s.color, 'fill-opacity': 0.15}));
    if (points.length === 1) root.append(svg('circle', {cx: at(x(s.rows[0].x)), cy: at(y(s.rows[0].y)), r: 4, fill: s.color}));
    else
      root.append(svg('path', {d: s.step ? `M${points[0]}${s.rows.slice(1).map((r) => `H${at(x(r.x))}V${at(y(r.y))}`).join('')}` : `M${points.join('L')}`,
        fill: 'none', stroke: s.color, 'stroke-width': 1.9, 'stroke-dasharray': s.dash.join(' ') || 'none'}));
  }
  el.replaceChildren(root);
  return {destroy() { el.replaceChildren(); }};
}
