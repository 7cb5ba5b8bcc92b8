/* curves.js - learning curves of many trials on one canvas; the one under the pointer stands out, a click opens it. */
import {canvasContext, fill, h, pointerAt} from '../dom.js';
import {nearest, placeTip, tipRow} from './hover.js';
import {ticks, toUnit} from './scale.js';
import {colors} from './vega.js';
import * as fmt from '../format.js';

const LEFT = 56, RIGHT = 14, TOP = 12, BOTTOM = 40, HEIGHT = 400, NEAR = 24;

export class Curves {
  constructor(el, data, on) {
    Object.assign(this, {el, data, on, curves: [], hovered: -1});
    this.canvas = h('canvas', {role: 'img', tabindex: '0'});
    this.tip = h('div.tip', {hidden: true});
    el.replaceChildren(h('div.curves-plot', null, this.canvas, this.tip));
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => this.hover(-1));
    this.canvas.addEventListener('click', () => { if (this.hovered >= 0) on.open(this.curves[this.hovered].trial); });
    this.canvas.addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (step && this.curves.length) this.hover((this.hovered + step + this.curves.length) % this.curves.length);
      else if (event.key === 'Enter' && this.hovered >= 0) on.open(this.curves[this.hovered].trial);
      else return;
      event.preventDefault();
    });
    this.observer = new ResizeObserver(() => { if (Math.abs(el.clientWidth - this.width) > 2) this.draw(); });
    this.observer.observe(el);
  }

  destroy() { this.observer.disconnect(); }

  /* curves: [{trial, x, y}] */
  show(curves, metric, xTitle, isTime, selection) {
    Object.assign(this, {curves: curves.filter((k) => k.y.some(Number.isFinite)), metric, xTitle, selection, hovered: -1});
    const xs = this.curves.flatMap((k) => k.x), ys = this.curves.flatMap((k) => k.y).filter(Number.isFinite), least = (v) => v.reduce((a, b) => Math.min(a, b), Infinity), most = (v) => v.reduce((a, b) => Math.max(a, b), -Infinity);
    const pad = (most(ys) - least(ys)) * 0.05 || 0.5;
    this.axes = [{scale: 'linear', min: 0, max: most(xs) || 1, isTime}, {scale: 'linear', min: least(ys) - pad, max: most(ys) + pad}];
    this.canvas.setAttribute('aria-label', `${metric} over ${xTitle} of ${this.curves.length} trials; arrow keys go from one to the next, Enter opens it`);
    this.draw();
  }

  px(x) { return LEFT + toUnit(this.axes[0], x) * (this.width - LEFT - RIGHT); }
  py(y) { return TOP + (1 - toUnit(this.axes[1], y)) * (HEIGHT - TOP - BOTTOM); }

  line(ctx, curve) {
    ctx.beginPath();
    curve.x.forEach((x, k) => { if (Number.isFinite(curve.y[k])) ctx.lineTo(this.px(x), this.py(curve.y[k])); });
    ctx.stroke();
    if (curve.x.length === 1) { ctx.beginPath(); ctx.arc(this.px(curve.x[0]), this.py(curve.y[0]), 3, 0, 7); ctx.stroke(); }
  }

  draw() {
    const c = colors();
    this.width = Math.max(240, this.el.clientWidth);
    const ctx = canvasContext(this.canvas, this.width, HEIGHT);
    if (!this.curves.length) return;
    ctx.font = '12px system-ui, sans-serif';
    for (const {at, label} of ticks(this.axes[1], 5)) {
      const y = TOP + (1 - at) * (HEIGHT - TOP - BOTTOM);
      ctx.fillStyle = c.line;
      ctx.fillRect(LEFT, y, this.width - LEFT - RIGHT, 1);
      ctx.fillStyle = c.soft;
      ctx.textAlign = 'right';
      ctx.fillText(label, LEFT - 7, y + 4);
    }
    for (const {at, label} of ticks(this.axes[0], this.width < 480 ? 3 : 7)) {
      ctx.textAlign = at > 0.95 ? 'right' : at < 0.02 ? 'left' : 'center';
      ctx.fillText(label, LEFT + at * (this.width - LEFT - RIGHT), HEIGHT - BOTTOM + 17);
    }
    ctx.textAlign = 'right';
    ctx.fillText(this.xTitle, this.width - RIGHT, HEIGHT - BOTTOM + 34);
    const colour = this.selection.colour, of = (i) => colour?.colours[colour.bin[i]] ?? (this.data.onFront[i] ? c.main : c.dim);
    this.curves.forEach((curve, k) => {
      if (k === this.hovered) return;
      Object.assign(ctx, {strokeStyle: of(curve.trial), lineWidth: this.data.onFront[curve.trial] ? 1.8 : 1.2, globalAlpha: this.hovered >= 0 ? 0.25 : 0.85});
      this.line(ctx, curve);
    });
    if (this.hovered < 0) return;
    Object.assign(ctx, {strokeStyle: of(this.curves[this.hovered].trial), lineWidth: 3, globalAlpha: 1});
    this.line(ctx, this.curves[this.hovered]);
  }

  hover(k, x, y) {
    if (k !== this.hovered) { this.hovered = k; this.draw(); }
    this.tip.hidden = k < 0;
    this.canvas.style.cursor = k >= 0 ? 'pointer' : '';
    if (k < 0) return;
    const curve = this.curves[k], at = x === undefined ? curve.x.length - 1 : nearest(curve.x, this.axes[0].max * (x - LEFT) / (this.width - LEFT - RIGHT));
    fill(this.tip, tipRow(this.axes[0].isTime ? fmt.duration(curve.x[at]) : `${fmt.compact(curve.x[at])} steps`, `${this.metric} ${fmt.number(curve.y[at])}`), this.data.describe(curve.trial));
    placeTip(this.tip, x ?? this.px(curve.x[at]), y ?? this.py(curve.y[at]));
  }

  point(event) {
    const [x, y] = pointerAt(event, this.canvas), value = this.axes?.[0].max * (x - LEFT) / (this.width - LEFT - RIGHT);
    let best = -1, least = NEAR;
    this.curves.forEach((curve, k) => {
      const at = nearest(curve.x, value), away = Math.hypot(this.px(curve.x[at]) - x, this.py(curve.y[at]) - y);
      if (away < least) [best, least] = [k, away];
    });
    this.hover(best, x, y);
  }
}
