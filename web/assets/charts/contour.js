/* contour.js - the expected score over two parameters, the others as in one trial: a map with lines of equal score, the trials, and
 * the points that the search would try next. */
import {canvasContext, h, pointerAt} from '../dom.js';
import {axisValue} from '../study/study_data.js';
import {byColour} from './colour.js';
import {Cloud, MARKS} from './cloud.js';
import {placeTip, tipRow} from './hover.js';
import {ticks, toUnit} from './scale.js';
import {colors} from './vega.js';
import * as fmt from '../format.js';

const LEFT = 58, RIGHT = 12, TOP = 26, BOTTOM = 40, LEVELS = 7, NEAR = 12;

function axisOf(param) {
  return param.choices ? {...param, scale: 'linear', min: -0.5, max: param.choices.length - 0.5} : param;
}

const placeOf = (param, axis, value) => toUnit(axis, param.choices ? param.choices.findIndex((choice) => String(choice) === String(value)) : value);

/* Line pieces [x0, y0, x1, y1] where the grid, of values at us x vs, crosses level: marching squares. */
function lines(us, vs, values, level) {
  const found = [], at = (i, j) => values[j * us.length + i];
  const cut = (a, b, pa, pb) => pa + (pb - pa) * (level - a) / (b - a);
  for (let j = 0; j + 1 < vs.length; j++)
    for (let i = 0; i + 1 < us.length; i++) {
      const [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)], points = [];
      if ((a < level) !== (b < level)) points.push([cut(a, b, us[i], us[i + 1]), vs[j]]);
      if ((b < level) !== (c < level)) points.push([us[i + 1], cut(b, c, vs[j], vs[j + 1])]);
      if ((c < level) !== (d < level)) points.push([cut(d, c, us[i], us[i + 1]), vs[j + 1]]);
      if ((d < level) !== (a < level)) points.push([us[i], cut(a, d, vs[j], vs[j + 1])]);
      for (let k = 0; k + 1 < points.length; k += 2) found.push([...points[k], ...points[k + 1]]);
    }
  return found;
}

export class Contour {
  /* on: {open(i)} */
  constructor(el, data, on) {
    Object.assign(this, {el, data, on});
    this.canvas = h('canvas', {role: 'img'});
    this.tip = h('div.tip', {hidden: true});
    this.plot = h('div.contour-plot', null, this.canvas);
    el.replaceChildren(this.plot);
    this.cloud = new Cloud(this.plot);
    this.plot.append(this.tip);
    this.plot.addEventListener('pointermove', (event) => this.point(event));
    this.plot.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.plot.addEventListener('click', (event) => { const i = this.nearest(event); if (i >= 0) this.on.open(i); });
    this.observer = new ResizeObserver(() => { if (this.grid && Math.abs(el.clientWidth - this.width) > 2) this.draw(); });
    this.observer.observe(el);
  }

  destroy() { this.observer.disconnect(); }

  /* grid: of /model/contour; next: points of /model/next */
  show(x, y, grid, next, selection) {
    Object.assign(this, {x, y, grid, next, selection});
    this.axes = [axisOf(x), axisOf(y)];
    this.us = grid.x.values.map((v) => placeOf(x, this.axes[0], v));
    this.vs = grid.y.values.map((v) => placeOf(y, this.axes[1], v));
    this.draw();
  }

  px(u) { return LEFT + u * (this.width - LEFT - RIGHT); }
  py(v) { return TOP + (1 - v) * (this.height - TOP - BOTTOM); }

  draw() {
    const c = colors();
    this.width = Math.max(240, this.el.clientWidth);
    this.height = Math.min(420, Math.max(280, Math.round(this.width * 0.62)));
    const ctx = canvasContext(this.canvas, this.width, this.height);
    this.drawMap(ctx, c);
    this.drawAxes(ctx, c);
    this.drawDots(c);
    this.drawNext(c);
    const best = this.grid.score.reduce((a, b) => (this.data.maximize ? Math.max(a, b) : Math.min(a, b)));
    this.canvas.setAttribute('aria-label', `Expected ${this.data.metric} over ${this.x.key} and ${this.y.key}: ${fmt.number(best)} at most expected, at ${this.bestText(best)}`);
  }

  bestText(best) {
    const k = this.grid.score.indexOf(best), value = (v) => (typeof v === 'number' ? fmt.number(v) : v);
    return `${value(this.grid.x.values[k % this.us.length])} and ${value(this.grid.y.values[Math.floor(k / this.us.length)])}`;
  }

  drawMap(ctx, c) {
    const {us, vs, grid} = this, lo = Math.min(...grid.score), hi = Math.max(...grid.score), span = hi - lo || 1;
    const edges = (places) => places.map((p, k) => [k ? (places[k - 1] + p) / 2 : Math.max(0, p - (places.length > 1 ? (places[1] - p) / 2 : 0.5)), k + 1 < places.length ? (p + places[k + 1]) / 2 : Math.min(1, p + (places.length > 1 ? (p - places[k - 1]) / 2 : 0.5))]);
    const xe = edges(us), ye = edges(vs);
    this.range = [lo, hi];
    for (let j = 0; j < vs.length; j++)
      for (let i = 0; i < us.length; i++) {
        const share = (grid.score[j * us.length + i] - lo) / span, [x0, x1] = xe[i].map((u) => this.px(u)), [y1, y0] = ye[j].map((v) => this.py(v));
        ctx.globalAlpha = 0.06 + 0.6 * (this.data.maximize ? share : 1 - share);
        ctx.fillStyle = c.main;
        ctx.fillRect(...[x0, y0, Math.round(x1) - Math.round(x0), Math.round(y1) - Math.round(y0)].map(Math.round));
      }
    ctx.globalAlpha = 1;
    if (this.x.choices || this.y.choices || hi === lo) return;
    ctx.font = '11px system-ui, sans-serif';
    for (let k = 1; k < LEVELS; k++) {
      const level = lo + span * k / LEVELS, pieces = lines(us, vs, grid.score, level);
      ctx.strokeStyle = c.card;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (const [a, b, d, e] of pieces) { ctx.moveTo(this.px(a), this.py(b)); ctx.lineTo(this.px(d), this.py(e)); }
      ctx.stroke();
      const at = pieces[Math.floor(pieces.length / 2)];
      if (!at) continue;
      ctx.fillStyle = c.ink;
      ctx.textAlign = 'center';
      ctx.fillText(fmt.number(Number(level.toPrecision(3))), Math.min(this.width - RIGHT - 16, Math.max(LEFT + 16, this.px(at[0]))), this.py(at[1]) + 4);
    }
  }

  drawAxes(ctx, c) {
    const bottom = this.height - BOTTOM;
    ctx.strokeStyle = c.axis;
    ctx.fillStyle = c.soft;
    ctx.font = '12px system-ui, sans-serif';
    ctx.strokeRect(LEFT, TOP, this.width - LEFT - RIGHT, bottom - TOP);
    const list = (param, axis, n) => (param.choices ? param.choices.map((label, k) => ({at: toUnit(axis, k), label: String(label)})) : ticks(axis, n));
    for (const {at, label} of list(this.x, this.axes[0], this.width < 420 ? 3 : 6)) {
      ctx.textAlign = at > 0.93 ? 'right' : at < 0.04 ? 'left' : 'center';
      ctx.fillText(label, this.px(at), bottom + 16);
    }
    ctx.textAlign = 'right';
    for (const {at, label} of list(this.y, this.axes[1], 5)) ctx.fillText(label.length > 8 ? `${label.slice(0, 7)}…` : label, LEFT - 6, Math.min(bottom, Math.max(TOP + 9, this.py(at) + 4)));
    ctx.fillText(this.x.key, this.width - RIGHT, bottom + 33);
    ctx.textAlign = 'left';
    ctx.fillText(this.y.key, 6, TOP - 10);
  }

  drawDots(c) {
    const d = this.data, n = d.n, mask = this.selection.mask;
    this.cloud.resize(this.width, this.height);
    this.dotX = new Float32Array(n).fill(NaN);
    this.dotY = new Float32Array(n).fill(NaN);
    for (const i of d.plotted) {
      const u = toUnit(this.axes[0], axisValue(d, this.x.key, i)), v = toUnit(this.axes[1], axisValue(d, this.y.key, i));
      if (u >= -0.01 && u <= 1.01 && v >= -0.01 && v <= 1.01) [this.dotX[i], this.dotY[i]] = [this.px(u), this.py(v)];
    }
    const chosen = d.plotted.filter((i) => !mask || mask[i]);
    if (mask) this.cloud.draw('faint', MARKS.dot(c.soft, 0.18, 1.6), this.dotX, this.dotY, d.plotted.filter((i) => !mask[i]));
    byColour(this.selection.colour, chosen.filter((i) => !d.onFront[i]), c.ink, (name, colour, list) => this.cloud.draw(name, MARKS.dot(colour, 0.75, 2.4), this.dotX, this.dotY, list));
    byColour(this.selection.colour, chosen.filter((i) => d.onFront[i]), c.ink, (name, colour, list) => this.cloud.draw(`front ${name}`, MARKS.disc(colour, c.card, 4.4), this.dotX, this.dotY, list));
  }

  drawNext(c) {
    const ctx = this.cloud.canvas.getContext('2d'), s = this.cloud.scale;
    ctx.setTransform(s, 0, 0, s, 0, 0);
    ctx.font = '700 11px system-ui, sans-serif';
    ctx.textAlign = 'center';
    this.next.forEach((point, k) => {
      const x = this.px(placeOf(this.x, this.axes[0], point.params[this.x.key])), y = this.py(placeOf(this.y, this.axes[1], point.params[this.y.key]));
      ctx.beginPath();
      ctx.moveTo(x, y - 10); ctx.lineTo(x + 10, y); ctx.lineTo(x, y + 10); ctx.lineTo(x - 10, y);
      ctx.closePath();
      ctx.fillStyle = c.bad;
      ctx.fill();
      ctx.strokeStyle = c.card;
      ctx.lineWidth = 1.5;
      ctx.stroke();
      ctx.fillStyle = c.card;
      ctx.fillText(String(k + 1), x, y + 4);
    });
  }

  nearest(event) {
    const [px, py] = pointerAt(event, this.plot);
    let best = -1, least = NEAR * NEAR;
    for (const i of this.data.plotted) {
      const d = (this.dotX[i] - px) ** 2 + (this.dotY[i] - py) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  point(event) {
    if (!this.grid) return;
    const [px, py] = pointerAt(event, this.plot), i = this.nearest(event), u = (px - LEFT) / (this.width - LEFT - RIGHT), v = 1 - (py - TOP) / (this.height - TOP - BOTTOM);
    this.tip.hidden = u < 0 || u > 1 || v < 0 || v > 1;
    this.plot.classList.toggle('pointing', i >= 0);
    if (this.tip.hidden) return;
    const near = (places, p) => places.reduce((best, q, k) => (Math.abs(q - p) < Math.abs(places[best] - p) ? k : best), 0), a = near(this.us, u), b = near(this.vs, v), k = b * this.us.length + a;
    const value = (x) => (typeof x === 'number' ? fmt.number(x) : x), g = this.grid;
    this.tip.replaceChildren(...(i >= 0 ? this.data.describe(i).filter(Boolean).flat() : [h('div.tip-head', null, `${this.x.key.split('.').at(-1)} ${value(g.x.values[a])}, ${this.y.key.split('.').at(-1)} ${value(g.y.values[b])}`),
      tipRow(`expected ${this.data.metric}`, fmt.number(g.score[k])), tipRow('95 %', fmt.interval(g.score_lo[k], g.score_hi[k])), tipRow('cost', fmt.cost(g.cost[k], this.data.costUnit))]));
    placeTip(this.tip, px, py);
  }
}
