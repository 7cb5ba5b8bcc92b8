/* front.js - cost against score: the main chart of a study.
 *
 * Layers from below: cloud (dominated, failed, stopped, intervals), Vega (axes, the model's band, the front), an overlay of
 * plain elements that follow the pointer. Marks differ by shape, not by colour alone.
 * Drag selects; ctrl-wheel zooms; shift-drag moves; arrow keys walk along the front and Enter opens a trial. */
import {byColour} from './colour.js';
import {Cloud, MARKS} from './cloud.js';
import {placeTip} from './hover.js';
import {colors, logTicks, mount, SECONDS_LABEL} from './vega.js';
import {fill, h, legendKey, pointerAt, renew} from '../dom.js';
import * as fmt from '../format.js';

const PAD = {left: 60, right: 18, top: 26, bottom: 46}, LANE = 26, NEAR = 14, MOVING_MAX = 500;

/* One hopeless score must not flatten all others: the bad end is at most three times as far from the best as nine of ten. */
function scoreRange(data) {
  const scores = data.plotted.map((i) => data.score[i]).sort((a, b) => a - b);
  if (!scores.length) return [0, 1];
  let [lo, hi] = [scores[0], scores.at(-1)];
  if (scores.length >= 10) {
    const tenth = Math.floor(scores.length / 10);
    if (data.maximize) lo = Math.max(lo, hi - 3 * (hi - scores[tenth]));
    else hi = Math.min(hi, lo + 3 * (scores[scores.length - 1 - tenth] - lo));
  }
  const margin = hi > lo ? (hi - lo) * 0.07 : Math.abs(hi) * 0.1 || 0.5;
  return [lo - margin, hi + margin];
}

function costRange(data) {
  let lo = Infinity, hi = 0;
  for (const i of data.plotted) {
    lo = Math.min(lo, data.cost[i]);
    hi = Math.max(hi, data.cost[i]);
  }
  if (!(hi > 0)) return [1, 10];
  const factor = hi > lo * 1.001 ? (hi / lo) ** 0.05 : 1.6;
  return [lo / factor, hi * factor];
}

function legend(data, model) {
  const counts = data.counts;
  return [
    legendKey('front', `on the front (${data.front.length})`),
    data.front.some((i) => data.beliefs.get(i).seeds < 2) && legendKey('once', `seen once (${data.front.filter((i) => data.beliefs.get(i).seeds < 2).length})`),
    data.plotted.length > 0 && legendKey('ring', `single runs (${data.plotted.length})`),
    data.study.branches > 0 && legendKey('course', 'one run and its branches'),
    data.infeasible.length > 0 && legendKey('over', `infeasible (${data.infeasible.length})`),
    data.objective && legendKey('front.large', `larger: more ${data.objective.metric}`),
    counts.stopped > 0 && legendKey('triangle', `stopped early (${counts.stopped})`),
    counts.failed + counts.lost > 0 && legendKey('cross', `failed or lost (${counts.failed + counts.lost})`),
    data.front.some((i) => data.beliefs.get(i).known) && legendKey('interval', 'fresh seeds, 95 %'),
    model && legendKey('band', 'front predicted by the model, 95 %')];
}

function laneOf(data) {
  return data.counts.failed + data.counts.lost + data.counts.stopped > 0 ? LANE : 0;
}

export class FrontChart {
  /* on: {open(i), select({cost, score} or null), zoom(domain or null)} */
  constructor(el, data, {model = null, zoom = null, mask = null, colour = null, on = {}} = {}) {
    Object.assign(this, {el, data, model, on, mask, colour, pick: null, hovered: -1});
    this.home = {x: costRange(data), y: scoreRange(data)};
    this.domain = zoom || {...this.home};
    this.lane = laneOf(data);
    this.brush = null; /* {cost: [lo, hi], score: [lo, hi]} */
    this.plot = h('div.front-plot', {tabindex: '0', role: 'group', 'aria-label': 'cost against score: arrow keys walk along the front, Enter opens a trial, plus and minus zoom'});
    this.vegaEl = h('div.layer');
    this.overlay = h('div.layer.overlay');
    this.tip = h('div.tip', {hidden: true, role: 'status'});
    this.ring = h('div.ring', {hidden: true});
    this.brushEl = h('div.brush', {hidden: true});
    this.pickLine = h('div.pick-line', {hidden: true});
    this.pickRing = h('div.pick-ring', {hidden: true});
    this.overlay.append(this.pickLine, this.pickRing, this.ring, this.brushEl);
    this.cloud = new Cloud(this.plot);
    this.plot.append(this.vegaEl, this.overlay, this.tip);
    this.plot.chart = this;
    this.legend = h('div.legend', null, legend(data, model));
    fill(el, this.legend, this.plot);
    this.listen();
  }

  /* New trials, another model: the same elements show them, so that focus, tooltip, selection and a drag stay. */
  async update(model) {
    const atHome = JSON.stringify(this.domain) === JSON.stringify(this.home), d = this.data;
    this.model = model;
    this.home = {x: costRange(d), y: scoreRange(d)};
    if (atHome) this.domain = {...this.home};
    this.lane = laneOf(d);
    renew(this.legend, legend(d, model));
    if (!this.chart) return;
    this.fit();
    const view = this.chart.view, {steps, front, band} = this.values();
    view.data('steps', steps).data('front', front).data('model', band);
    this.vegaEl.setAttribute('aria-label', this.label());
    this.redraw();
    this.placeBrush();
  }

  geometry() {
    const width = Math.max(240, this.plot.clientWidth), phone = width < 560;
    const left = phone ? 46 : PAD.left;
    this.box = {left, top: PAD.top, width: width - left - PAD.right, height: (phone ? 300 : Math.min(460, Math.max(340, window.innerHeight * 0.5))) - PAD.top};
    this.size = {width, height: this.box.top + this.box.height + this.lane + PAD.bottom};
    this.plot.style.height = `${this.size.height}px`;
  }

  /* What Vega draws: the steps of the front, its members, the model's band. */
  values() {
    const {data} = this, sign = data.maximize ? 1 : -1;
    const steps = []; /* the recommended trial may be no member: it makes no step down */
    for (const i of data.front) {
      const {cost, score} = data.place(i);
      if (!steps.length || sign * score > sign * steps.at(-1).score) steps.push({cost, score});
    }
    const amounts = data.objective ? data.front.map((i) => data.beliefs.get(i).objective).sort((a, b) => a - b) : null;
    /* of a member's mark, in square pixels: by rank of the third objective, where there is one */
    const area = (i) => (amounts ? 35 + 300 * amounts.indexOf(data.beliefs.get(i).objective) / Math.max(1, amounts.length - 1) : i === data.best || i === data.knee ? 150 : 85);
    const front = data.front.map((i) => ({cost: data.place(i).cost, score: data.place(i).score, once: data.beliefs.get(i).seeds < 2, colour: this.colour?.colours[this.colour.bin[i]] ?? null, chosen: !this.mask || !!this.mask[i], special: i === data.best || i === data.knee, area: area(i),
      label: [i === data.best ? 'best' : '', i === data.knee ? 'knee' : ''].filter(Boolean).join(', ') + (i === data.best || i === data.knee ? ` #${data.number[i]}` : '')}));
    if (steps.length) {
      steps.push({cost: 1e300, score: steps.at(-1).score});
      steps.unshift({cost: steps[0].cost, score: -sign * 1e12});
    }
    const band = this.model ? this.model.cost.map((cost, k) => ({cost, mean: this.model.mean[k], lo: this.model.lo[k], hi: this.model.hi[k]})) : [];
    return {steps, front, band};
  }

  padding() {
    return {left: this.box.left, right: PAD.right, top: this.box.top, bottom: this.lane + PAD.bottom};
  }

  spec() {
    const c = colors(), {data, box} = this, {steps, front, band} = this.values();
    const x = {scale: 'x', field: 'cost'}, y = (field) => ({scale: 'y', field});
    return {
      autosize: 'none',
      padding: this.padding(),
      height: box.height,
      signals: [{name: 'xd', value: this.domain.x}, {name: 'yd', value: this.domain.y}, {name: 'ticks', value: this.ticks()}, {name: 'lane', value: this.lane}, {name: 'left', value: box.left}],
      data: [{name: 'steps', values: steps}, {name: 'front', values: front}, {name: 'model', values: band}],
      scales: [
        {name: 'x', type: 'log', domain: {signal: 'xd'}, range: 'width', zero: false},
        {name: 'y', type: 'linear', domain: {signal: 'yd'}, range: 'height', zero: false}],
      axes: [
        {orient: 'bottom', scale: 'x', grid: false, offset: {signal: 'lane'}, values: {signal: 'ticks'}, title: data.costTitle, titleAnchor: 'end',
          encode: {labels: {update: {text: {signal: data.costIsTime ? SECONDS_LABEL : "format(datum.value, '~s')"}}}}},
        {orient: 'bottom', scale: 'x', grid: true, domain: false, ticks: false, labels: false, values: {signal: 'ticks'}},
        {orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 6}],
      marks: [
        {type: 'group', encode: {update: {width: {signal: 'width'}, height: {signal: 'height'}, clip: {value: true}}},
          marks: [
            {type: 'area', from: {data: 'model'}, encode: {update: {x, y: y('lo'), y2: y('hi'), fill: {value: c.model}, fillOpacity: {value: 0.17}}}},
            {type: 'line', from: {data: 'model'}, encode: {update: {x, y: y('mean'), stroke: {value: c.model}, strokeDash: {value: [6, 4]}, strokeWidth: {value: 1.6}}}},
            {type: 'line', from: {data: 'steps'}, encode: {update: {x, y: y('score'), interpolate: {value: 'step-after'}, stroke: {value: c.main}, strokeWidth: {value: 2}}}},
            {type: 'symbol', from: {data: 'front'}, encode: {update: {x, y: y('score'), size: {field: 'area'}, fill: [{test: 'datum.once', value: c.card}, {test: 'datum.colour', field: 'colour'}, {value: c.main}], stroke: [{test: 'datum.once && datum.colour', field: 'colour'}, {test: 'datum.once', value: c.main}, {value: c.card}], strokeWidth: {signal: "datum.once && datum.colour ? 3 : 1.8"}, opacity: {signal: 'datum.chosen ? 1 : 0.3'}}}},
            {type: 'text', from: {data: 'front'}, encode: {update: {x, y: {signal: `clamp(scale('y', datum.score) + ${data.maximize ? -9 : 16}, 11, height - 3)`}, dx: {value: -9}, align: {value: 'right'}, text: {field: 'label'}, fill: {value: c.ink}, fontWeight: {value: 600}, fontSize: {value: 12.5}}}},
          ]},
        {type: 'text', encode: {update: {x: {signal: '8 - left'}, y: {value: -12}, text: {value: `${data.metric} (${data.maximize ? 'higher' : 'lower'} is better)`}, fill: {value: c.soft}, fontSize: {value: 12}}}},
      ],
    };
  }

  ticks() {
    return logTicks(this.domain.x[0], this.domain.x[1], this.box.width < 480 ? 4 : 8, this.data.costIsTime);
  }

  async show() {
    this.geometry();
    this.cloud.resize(this.size.width, this.size.height);
    this.drawCloud();
    this.chart = await mount(this.vegaEl, {...this.spec(), fixedWidth: this.box.width}, this.label());
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.plot);
    this.place();
    return this;
  }

  label() {
    const d = this.data;
    return `Cost against ${d.metric} of ${d.plotted.length} trials, ${d.front.length} of them on the front` +
      (d.best >= 0 ? `; of the best ${fmt.number(d.place(d.best).score)} is expected at ${fmt.cost(d.place(d.best).cost, d.costUnit)}` : '');
  }

  resized() {
    if (!this.chart || Math.abs(this.plot.clientWidth - this.size.width) < 2 || this.plot.clientWidth < 100) return;
    this.fit();
    this.redraw();
    this.placeBrush();
  }

  /* Canvas and Vega get the sizes of the window; the left edge differs on a narrow one. */
  fit() {
    const before = JSON.stringify([this.box, this.size]);
    this.geometry();
    if (JSON.stringify([this.box, this.size]) === before) return;
    this.cloud.resize(this.size.width, this.size.height);
    this.chart.view.padding(this.padding()).width(this.box.width).height(this.box.height).signal('lane', this.lane).signal('left', this.box.left);
  }

  destroy() {
    this.observer?.disconnect();
    clearTimeout(this.rest);
    clearTimeout(this.zoomed);
    cancelAnimationFrame(this.frame);
    this.chart?.destroy();
  }

  /* -- places -- */

  px(cost) {
    const [lo, hi] = this.domain.x;
    return this.box.left + this.box.width * Math.log(cost / lo) / Math.log(hi / lo);
  }

  py(score) {
    const [lo, hi] = this.domain.y;
    return this.box.top + this.box.height * (1 - (score - lo) / (hi - lo));
  }

  costAt(px) {
    const [lo, hi] = this.domain.x;
    return lo * (hi / lo) ** ((px - this.box.left) / this.box.width);
  }

  scoreAt(py) {
    const [lo, hi] = this.domain.y;
    return hi - (hi - lo) * (py - this.box.top) / this.box.height;
  }

  /* Pixel places of all trials; those without a place are NaN. Far worse scores sit at the edge of the whole view. */
  locate() {
    const d = this.data, n = d.n, x = this.x?.length === n ? this.x : (this.x = new Float32Array(n)), y = this.y?.length === n ? this.y : (this.y = new Float32Array(n));
    if (this.runX?.length !== n) [this.runX, this.runY] = [new Float32Array(n), new Float32Array(n)];
    const laneY = this.box.top + this.box.height + this.lane / 2 + 1;
    const {left, width, top, height} = this.box, parked = [];
    for (let i = 0; i < n; i++) {
      const state = d.state[i];
      if (d.isPlotted[i]) {
        const at = d.place(i), inside = (score) => Math.min(Math.max(score, this.home.y[0]), this.home.y[1]);
        x[i] = this.px(at.cost);
        y[i] = this.py(inside(at.score));
        this.runX[i] = this.px(d.cost[i]);
        this.runY[i] = this.py(inside(d.score[i]));
      } else if (state === 'failed' || state === 'lost' || state === 'stopped') {
        const cost = d.took(i);
        x[i] = cost > 0 ? this.px(cost) : left;
        y[i] = laneY;
        if (x[i] <= left) parked.push(i);
      } else {
        x[i] = y[i] = NaN;
        continue;
      }
      if ((x[i] < left - 1 && y[i] !== laneY) || x[i] > left + width + 1 || (y[i] !== laneY && (y[i] < top - 1 || y[i] > top + height + 1))) x[i] = NaN;
    }
    this.park(parked);
  }

  /* Trials that ended before the left edge, or at no known cost, stand side by side from there on, not on one spot. */
  park(trials) {
    const step = Math.min(9, 0.25 * this.box.width / Math.max(1, trials.length));
    trials.forEach((i, k) => { this.x[i] = this.box.left + 5 + k * step; });
  }

  drawCloud() {
    const c = colors(), d = this.data, mask = this.mask;
    this.locate();
    const every = this.moving && d.n > 3 * MOVING_MAX ? Math.ceil(d.n / MOVING_MAX) : 1;
    const groups = {ring: [], faint: [], over: [], cross: [], triangle: []};
    for (let i = 0; i < d.n; i++) {
      if (Number.isNaN(this.x[i]) || d.onFront[i] || i % every) continue;
      if (!d.isPlotted[i]) groups[d.state[i] === 'stopped' ? 'triangle' : 'cross'].push(i);
      else groups[mask && !mask[i] ? 'faint' : d.column.infeasible[i] ? 'over' : 'ring'].push(i);
    }
    const dense = d.plotted.length > 2000 ? 0.45 : 0.8;
    this.cloud.clear();
    if (d.study.branches) this.drawRuns(c);
    this.cloud.draw('faint', MARKS.ring(c.dim, 0.12), this.x, this.y, groups.faint);
    byColour(this.colour, groups.ring, mask ? c.ink : c.dim, (name, colour, list) => this.cloud.draw(`${name} ${!!mask}`, this.colour ? MARKS.dot(colour, 0.85, 2.8) : MARKS.ring(colour, mask ? 0.8 : dense), this.x, this.y, list));
    const {left, top, width, height} = this.box, inside = (i) => this.runX[i] >= left && this.runX[i] <= left + width && this.runY[i] >= top && this.runY[i] <= top + height;
    this.cloud.draw('own', MARKS.ring(c.main, 0.5), this.runX, this.runY, d.front.filter((i) => d.beliefs.get(i).known && inside(i)));
    this.cloud.draw('over', MARKS.barred(c.bad, 0.75), this.x, this.y, groups.over);
    this.cloud.draw('triangle', MARKS.triangle(c.dim, 0.9), this.x, this.y, groups.triangle);
    this.cloud.draw('cross', MARKS.cross(c.bad, 0.9), this.x, this.y, groups.cross);
    this.drawIntervals(c);
  }

  /* Through the branches of a run, which are points of its course, to its end: as single runs scored. */
  drawRuns(c) {
    const {left, top, width, height} = this.box, ctx = this.cloud.canvas.getContext('2d'), s = this.cloud.scale;
    ctx.save();
    ctx.setTransform(s, 0, 0, s, 0, 0);
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.beginPath();
    for (const run of this.data.runs()) {
      const points = run.filter((i) => this.data.isPlotted[i]);
      points.forEach((i, k) => ctx[k ? 'lineTo' : 'moveTo'](this.px(this.data.cost[i]), this.py(this.data.score[i])));
    }
    ctx.globalAlpha = 0.35;
    ctx.strokeStyle = c.dim;
    ctx.lineWidth = 1;
    ctx.stroke();
    ctx.restore();
  }

  /* The intervals of fresh runs of the front's members: bars with caps, in one path. */
  drawIntervals(c) {
    const {left, top, width, height} = this.box, ctx = this.cloud.canvas.getContext('2d'), s = this.cloud.scale;
    const inside = (y) => Math.max(top, Math.min(top + height, y));
    ctx.save();
    ctx.setTransform(s, 0, 0, s, 0, 0);
    ctx.beginPath();
    for (const [i, b] of this.data.beliefs) {
      const x = this.px(b.cost);
      if (!b.known || !this.data.onFront[i] || !(x >= left && x <= left + width)) continue;
      const ends = [this.py(b.lo), this.py(b.hi)];
      ctx.moveTo(x, inside(ends[0]));
      ctx.lineTo(x, inside(ends[1]));
      for (const y of ends) if (y === inside(y)) { ctx.moveTo(x - 3.5, y); ctx.lineTo(x + 3.5, y); }
    }
    ctx.globalAlpha = 0.75;
    ctx.strokeStyle = c.main;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    ctx.restore();
  }

  redraw() {
    this.drawCloud();
    this.chart?.view.signal('xd', this.domain.x).signal('yd', this.domain.y).signal('ticks', this.ticks()).runAsync();
    this.place();
  }

  schedule() {
    if (this.frame) return;
    this.moving = true; /* fewer marks while it moves, all marks once it stops */
    clearTimeout(this.rest);
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.redraw(); });
    this.rest = setTimeout(() => { this.moving = false; this.drawCloud(); }, 160);
  }

  setSelection(mask, colour) {
    Object.assign(this, {mask, colour});
    if (!this.chart) return;
    this.chart.view.data('front', this.values().front).runAsync();
    this.drawCloud();
  }

  /* The range that is chosen by cost and score, drawn; null: none. */
  setBrush(range) {
    if (this.drags) return;
    const finite = (v, k, home) => (Number.isFinite(v) ? v : home[k]), all = (r, home) => r.map((v, k) => finite(v, k, home));
    this.brush = range && {cost: all(range.cost, this.home.x), score: all(range.score, this.home.y)};
    this.brushEl.hidden = !this.brush;
    if (this.chart) this.placeBrush();
  }

  setZoom(domain) {
    this.domain = domain || {...this.home};
    this.schedule();
    clearTimeout(this.zoomed);
    this.zoomed = setTimeout(() => this.on.zoom?.(domain), 250);
  }

  zoomBy(factor, cx = 0.5, cy = 0.5) {
    const [lx, hx] = this.domain.x.map(Math.log), [ly, hy] = this.domain.y;
    const ax = lx + (hx - lx) * cx, ay = ly + (hy - ly) * cy;
    const x = [Math.exp(ax - (ax - lx) * factor), Math.exp(ax + (hx - ax) * factor)], y = [ay - (ay - ly) * factor, ay + (hy - ay) * factor];
    if (x[1] / x[0] < 1.0005 || x[1] / x[0] > 1e15) return;
    this.setZoom({x, y});
  }

  /* -- pointer -- */

  setPick(pick) {
    this.pick = pick;
    if (this.chart) this.place();
  }

  place() {
    const {pick, box} = this;
    const inside = (x, y) => x >= box.left - 1 && x <= box.left + box.width + 1 && y >= box.top - 1 && y <= box.top + box.height + 1;
    const index = pick ? pick.index : -1;
    this.pickRing.hidden = !(index >= 0 && inside(this.x[index], this.y[index]));
    if (!this.pickRing.hidden) move(this.pickRing, this.x[index], this.y[index]);
    this.pickLine.hidden = !pick || (pick.budget === undefined && pick.score === undefined);
    if (!this.pickLine.hidden) {
      const s = this.pickLine.style, vertical = pick.budget !== undefined;
      const at = vertical ? this.px(pick.budget) : this.py(pick.score);
      this.pickLine.hidden = vertical ? at < box.left || at > box.left + box.width : at < box.top || at > box.top + box.height;
      this.pickLine.className = `pick-line ${vertical ? 'v' : 'h'}`;
      s.left = `${vertical ? at : box.left}px`;
      s.top = `${vertical ? box.top : at}px`;
      s.width = vertical ? '0' : `${box.width}px`;
      s.height = vertical ? `${box.height}px` : '0';
    }
    if (this.hovered >= 0) this.hover(this.hovered);
  }

  nearest(px, py) {
    let best = -1, least = NEAR * NEAR;
    for (let i = 0; i < this.data.n; i++) {
      const dx = this.x[i] - px, dy = this.y[i] - py, d = (dx * dx + dy * dy) * (this.data.onFront[i] ? 0.5 : 1);
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  hover(i) {
    this.hovered = i;
    const hidden = i < 0 || Number.isNaN(this.x[i]);
    this.ring.hidden = this.tip.hidden = hidden;
    this.plot.classList.toggle('pointing', !hidden);
    if (hidden) return;
    move(this.ring, this.x[i], this.y[i]);
    fill(this.tip, this.data.describe(i));
    placeTip(this.tip, this.x[i], this.y[i]);
  }

  listen() {
    const at = (event) => pointerAt(event, this.plot);
    let start = null, from = null;
    this.overlay.addEventListener('pointermove', (event) => {
      const [x, y] = at(event);
      if (!start) {
        this.hover(this.nearest(x, y));
      } else if (start.pan) {
        const dx = (start.x - x) / this.box.width, dy = (y - start.y) / this.box.height;
        const ratio = (from.x[1] / from.x[0]) ** dx, span = from.y[1] - from.y[0];
        this.setZoom({x: from.x.map((v) => v * ratio), y: from.y.map((v) => v + dy * span)});
      } else if (start.moved || Math.hypot(x - start.x, y - start.y) > 5) {
        start.moved = true;
        this.hover(-1);
        this.drawBrush(start.x, start.y, x, y);
      }
    });
    this.overlay.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      const [x, y] = at(event);
      if (event.pointerType === 'touch') {
        const i = this.nearest(x, y);
        if (i >= 0 && i === this.hovered) this.on.open?.(i);
        this.hover(i);
        return;
      }
      this.overlay.setPointerCapture(event.pointerId);
      start = {x, y, pan: event.shiftKey, moved: false};
      this.drags = true;
      from = this.domain;
    });
    this.overlay.addEventListener('pointerup', (event) => {
      if (!start) return;
      const [x, y] = at(event), done = start;
      start = null;
      this.drags = false;
      if (done.pan) return;
      if (!done.moved) {
        const i = this.nearest(x, y);
        if (i >= 0) this.on.open?.(i, event);
        else if (!this.brushEl.hidden) this.clearBrush();
        return;
      }
      this.finishBrush(done.x, done.y, x, y);
    });
    this.overlay.addEventListener('pointercancel', () => { start = null; this.drags = false; });
    this.overlay.addEventListener('pointerleave', () => { if (!start) this.hover(-1); });
    this.overlay.addEventListener('dblclick', () => this.setZoom(null));
    this.overlay.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const [x, y] = at(event);
      this.zoomBy(Math.exp(event.deltaY * 0.002), (x - this.box.left) / this.box.width, 1 - (y - this.box.top) / this.box.height);
    }, {passive: false});
    this.plot.addEventListener('keydown', (event) => this.key(event));
    this.plot.addEventListener('blur', () => this.hover(-1));
  }

  key(event) {
    const front = this.data.front, now = front.indexOf(this.hovered);
    const step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[event.key];
    if (step && front.length) this.hover(front[Math.max(0, Math.min(front.length - 1, now < 0 ? (step > 0 ? 0 : front.length - 1) : now + step))]);
    else if (event.key === 'Enter' && this.hovered >= 0) this.on.open?.(this.hovered, event);
    else if (event.key === '+' || event.key === '=') this.zoomBy(0.7);
    else if (event.key === '-') this.zoomBy(1 / 0.7);
    else if (event.key === '0') this.setZoom(null);
    else if (event.key === 'Escape') this.clearBrush();
    else return;
    event.preventDefault();
  }

  drawBrush(x0, y0, x1, y1) {
    const {left, top, width, height} = this.box, s = this.brushEl.style;
    const clampX = (v) => Math.max(left, Math.min(left + width, v)), clampY = (v) => Math.max(top, Math.min(top + height, v));
    const [a, b] = [clampX(Math.min(x0, x1)), clampX(Math.max(x0, x1))], [u, v] = [clampY(Math.min(y0, y1)), clampY(Math.max(y0, y1))];
    this.brushEl.hidden = false;
    Object.assign(s, {left: `${a}px`, top: `${u}px`, width: `${b - a}px`, height: `${v - u}px`});
    return [a, b, u, v];
  }

  finishBrush(x0, y0, x1, y1) {
    const [a, b, u, v] = this.drawBrush(x0, y0, x1, y1);
    this.on.select?.({cost: [this.costAt(a), this.costAt(b)], score: [this.scoreAt(v), this.scoreAt(u)]});
  }

  /* After the scales moved. */
  placeBrush() {
    if (this.brush) this.drawBrush(this.px(this.brush.cost[0]), this.py(this.brush.score[0]), this.px(this.brush.cost[1]), this.py(this.brush.score[1]));
  }

  clearBrush() {
    this.setBrush(null);
    this.on.select?.(null);
  }
}

function move(el, x, y) {
  el.style.left = `${x}px`;
  el.style.top = `${y}px`;
}
