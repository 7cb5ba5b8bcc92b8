/* parallel.js - parallel coordinates on a canvas: a line for each trial through all parameters, cost and score.
 *
 * Drag along an axis to keep only the lines that pass there; ranges of several axes go together. Three canvases, from below:
 * all lines, faint, and drawn once; the chosen ones; the axes, drawn once. While a range moves only some of the chosen lines
 * are drawn, and all once it stops, a slice in a frame: brushing stays smooth with thousands of lines. */
import {canvasContext, fill, h} from '../dom.js';
import {byColour} from './colour.js';
import {axisValue} from '../study/study_data.js';
import {fromUnit, ticks, toUnit} from './scale.js';
import {colors} from './vega.js';

const TOP = 44, HEIGHT = 230, BOTTOM = 14, SIDE = 62, MIN_STEP = 104, SLICE = 300, MOVING_MAX = 250;

function finiteRange(values) {
  let lo = Infinity, hi = -Infinity;
  for (const v of values) if (typeof v === 'number' && Number.isFinite(v)) [lo, hi] = [Math.min(lo, v), Math.max(hi, v)];
  return [lo, hi];
}

export class Parallel {
  /* on.filter(key, range or null) */
  constructor(el, data, filters, on) {
    Object.assign(this, {el, data, filters, on});
    this.inner = h('div.parallel-inner');
    this.dimCanvas = h('canvas', {'aria-hidden': 'true'});
    this.axesCanvas = h('canvas', {'aria-hidden': 'true'});
    this.canvas = h('canvas', {role: 'img', 'aria-label': `Parallel coordinates of ${data.plotted.length} trials: ${data.params.map((p) => p.key).join(', ')}, cost, ${data.metric}`});
    fill(el, this.inner);
    this.update();
    this.observer = new ResizeObserver(() => { if (Math.abs(el.clientWidth - this.lastWidth) > 2) this.layout(); });
    this.observer.observe(el);
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.dimFrame);
  }

  update() {
    const d = this.data, axes = d.params.map((p) => ({...p, label: p.key}));
    const costs = finiteRange(d.plotted.map((i) => d.cost[i])), scores = finiteRange(d.plotted.map((i) => d.score[i]));
    axes.push({key: 'cost', label: 'cost', scale: 'log', min: costs[0], max: costs[1], isTime: d.costIsTime});
    axes.push({key: 'score', label: d.metric, scale: 'linear', min: scores[0], max: scores[1]});
    for (const a of axes) {
      if (!(a.max > a.min)) [a.min, a.max] = a.scale === 'linear' || a.choices ? [a.min - 0.5, a.max + 0.5] : [a.min / 1.5, a.max * 1.5];
      a.y = new Float32Array(d.n);
      for (let i = 0; i < d.n; i++) a.y[i] = TOP + HEIGHT * (1 - toUnit(a, axisValue(d, a.key, i)));
    }
    if (this.axes?.length === axes.length && this.axes.every((a, k) => a.key === axes[k].key)) { /* the elements stay, with focus and a drag under way */
      this.axes.forEach((a, k) => Object.assign(a, axes[k]));
      this.drawStill();
    } else {
      this.axes = axes;
      this.layout();
    }
  }

  layout() {
    const width = Math.max(this.el.clientWidth, SIDE * 2 + MIN_STEP * (this.axes.length - 1));
    this.lastWidth = this.el.clientWidth;
    this.scale = Math.min(2, window.devicePixelRatio || 1);
    this.width = width;
    for (const canvas of [this.dimCanvas, this.canvas, this.axesCanvas]) canvasContext(canvas, width, TOP + HEIGHT + BOTTOM);
    this.inner.style.width = `${width}px`;
    this.inner.style.height = `${TOP + HEIGHT + BOTTOM}px`;
    fill(this.inner, this.dimCanvas, this.canvas, this.axesCanvas);
    this.axes.forEach((a, k) => {
      a.x = SIDE + (width - 2 * SIDE) * k / (this.axes.length - 1);
      const label = h('div.axis-label', {title: a.label}, a.label.replaceAll('.', '.\u200b').replaceAll('_', '_\u200b'));
      label.style.left = `${a.x}px`;
      label.style.top = '0';
      a.hit = h('div.axis-hit', {title: `drag to keep only trials with ${a.label} in a range; click to clear`, role: 'slider', tabindex: '0', 'aria-orientation': 'vertical', 'aria-valuemin': '0', 'aria-valuemax': '100', 'aria-valuenow': '50', 'aria-label': `range of ${a.label}`, 'aria-valuetext': 'all', 'data-key': a.key});
      Object.assign(a.hit.style, {left: `${a.x}px`, top: `${TOP - 4}px`, height: `${HEIGHT + 8}px`});
      a.range = h('div.axis-range', {hidden: true});
      a.range.style.left = `${a.x}px`;
      this.inner.append(label, a.range, a.hit);
      this.listen(a);
      this.place(a);
    });
    this.drawStill();
    this.draw(false);
  }

  listen(a) {
    let start = null;
    const at = (event) => Math.max(0, Math.min(1, 1 - (event.clientY - this.inner.getBoundingClientRect().top - TOP) / HEIGHT));
    const apply = (u0, u1) => {
      let [lo, hi] = [Math.min(u0, u1), Math.max(u0, u1)];
      if (hi - lo < 0.015) return this.change(a, null);
      this.change(a, [lo <= 0.001 ? -Infinity : fromUnit(a, lo), hi >= 0.999 ? Infinity : fromUnit(a, hi)]);
    };
    a.hit.addEventListener('pointerdown', (event) => { if (event.button === 0) { a.hit.setPointerCapture(event.pointerId); start = at(event); } });
    a.hit.addEventListener('pointermove', (event) => { if (start !== null) apply(start, at(event)); });
    a.hit.addEventListener('pointerup', (event) => { if (start !== null) { apply(start, at(event)); start = null; } });
    a.hit.addEventListener('pointercancel', () => { start = null; });
    /* keys: up and down move the range by a twentieth, shift widens it, escape clears */
    a.hit.addEventListener('keydown', (event) => {
      const step = {ArrowUp: 0.05, ArrowDown: -0.05}[event.key];
      if (event.key === 'Escape' || event.key === 'Delete') this.change(a, null);
      else if (step) {
        const range = this.filters.get(a.key) ?? (step > 0 ? [-Infinity, Infinity] : [-Infinity, Infinity]);
        let [lo, hi] = [range[0] === -Infinity ? 0 : toUnit(a, range[0]), range[1] === Infinity ? 1 : toUnit(a, range[1])];
        if (event.shiftKey) hi = Math.max(lo + 0.05, Math.min(1, hi + step));
        else if (step > 0) lo = Math.min(hi - 0.05, lo + step);
        else [lo, hi] = lo > 0 ? [Math.max(0, lo + step), hi] : [lo, Math.max(0.05, hi + step)];
        this.change(a, [lo <= 0.001 ? -Infinity : fromUnit(a, lo), hi >= 0.999 ? Infinity : fromUnit(a, hi)]);
      } else return;
      event.preventDefault();
    });
  }

  change(a, range) {
    if (range && range[0] === -Infinity && range[1] === Infinity) range = null;
    this.on.filter(a.key, range);
  }

  place(a) {
    const range = this.filters.get(a.key);
    a.range.hidden = !range;
    a.hit.setAttribute('aria-valuetext', range ? `${range[0]} to ${range[1]}` : 'all');
    if (!range) return;
    const lo = range[0] === -Infinity ? 0 : Math.max(0, toUnit(a, range[0])), hi = range[1] === Infinity ? 1 : Math.min(1, toUnit(a, range[1]));
    a.hit.setAttribute('aria-valuenow', String(Math.round(50 * (lo + hi))));
    a.range.style.top = `${TOP + HEIGHT * (1 - hi)}px`;
    a.range.style.height = `${Math.max(2, HEIGHT * (hi - lo))}px`;
  }

  /* moving: another call follows soon, a sketch is enough */
  setFilters(filters, mask, colour, moving = false) {
    Object.assign(this, {filters, mask, colour});
    for (const a of this.axes) this.place(a);
    cancelAnimationFrame(this.frame);
    if (moving) this.draw(true);
    else this.frame = requestAnimationFrame(() => this.draw(false));
  }

  lines(ctx, index, from, to) {
    ctx.beginPath();
    for (let k = from; k < to; k++) {
      const i = index[k];
      let open = false;
      for (const a of this.axes) {
        const y = a.y[i];
        if (!(y > -1e6)) { open = false; continue; }
        open ? ctx.lineTo(a.x, y) : ctx.moveTo(a.x, y);
        open = true;
      }
    }
    ctx.stroke();
  }

  prepare(canvas) {
    const ctx = canvas.getContext('2d');
    ctx.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    ctx.clearRect(0, 0, this.width, TOP + HEIGHT + BOTTOM);
    ctx.lineJoin = 'bevel';
    return ctx;
  }

  draw(moving) {
    const c = colors(), d = this.data, chosen = [], front = [];
    for (const i of d.plotted) if (!this.mask || this.mask[i]) (d.onFront[i] ? front : chosen).push(i);
    const every = moving ? Math.ceil(chosen.length / MOVING_MAX) : 1, some = every > 1 ? chosen.filter((_, k) => k % every === 0) : chosen;
    const ctx = this.prepare(this.canvas), alpha = Math.max(0.012, Math.min(0.6, 1 - 0.7 ** (HEIGHT / Math.max(1, some.length)))); /* about a third covered on average, however many */
    this.dimCanvas.hidden = !this.mask;
    const stroke = (list, plain, more) => byColour(this.colour, list, plain, (_, colour, trials) => { Object.assign(ctx, {...more, strokeStyle: colour}); this.lines(ctx, trials, 0, trials.length); });
    const slice = (from) => stroke(some.slice(from, from + SLICE), c.main, {globalAlpha: this.colour ? Math.max(0.2, alpha) : alpha, lineWidth: 1});
    const over = () => stroke(front, c.ink, {globalAlpha: 0.85, lineWidth: moving ? 1 : this.colour ? 2.4 : 1.6}); /* hairlines are much cheaper */
    delete this.el.dataset.drawn;
    let at = 0;
    const next = () => {
      slice(at);
      at += SLICE;
      if (at === SLICE || at >= some.length) over(); /* the front is drawn from the first frame on, and last on top */
      if (at < some.length) this.frame = requestAnimationFrame(next);
      else if (!moving) this.el.dataset.drawn = String(chosen.length + front.length);
    };
    next();
  }

  /* The parts that no filter changes. */
  drawStill() {
    const c = colors(), all = this.data.plotted, dim = this.prepare(this.dimCanvas);
    this.drawAxes(this.prepare(this.axesCanvas), c);
    cancelAnimationFrame(this.dimFrame);
    let at = 0;
    const next = () => {
      Object.assign(dim, {strokeStyle: c.line, globalAlpha: 0.5});
      this.lines(dim, all, at, Math.min(at + SLICE, all.length));
      at += SLICE;
      if (at < all.length) this.dimFrame = requestAnimationFrame(next);
    };
    next();
  }

  drawAxes(ctx, c) {
    ctx.globalAlpha = 1;
    ctx.font = '11px system-ui, sans-serif';
    ctx.lineWidth = 1;
    for (const a of this.axes) {
      ctx.strokeStyle = c.axis;
      ctx.beginPath();
      ctx.moveTo(a.x, TOP);
      ctx.lineTo(a.x, TOP + HEIGHT);
      ctx.stroke();
      for (const tick of ticks(a, 4)) {
        const y = TOP + HEIGHT * (1 - tick.at);
        ctx.beginPath();
        ctx.moveTo(a.x - 4, y);
        ctx.lineTo(a.x, y);
        ctx.stroke();
        ctx.textAlign = 'right';
        ctx.globalAlpha = 0.86; /* a plate under the text, for lines run everywhere */
        ctx.fillStyle = c.card;
        ctx.fillRect(a.x - 9 - ctx.measureText(tick.label).width, y - 7, ctx.measureText(tick.label).width + 4, 14);
        ctx.globalAlpha = 1;
        ctx.fillStyle = c.ink;
        ctx.fillText(tick.label, a.x - 7, y + 4);
      }
    }
  }
}
