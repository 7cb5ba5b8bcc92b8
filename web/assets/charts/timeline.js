/* timeline.js - the trials of each device over time: a row for each device, on a canvas (10,000 bars are no scene graph's task). */
import {canvasContext, fill, h, pointerAt} from '../dom.js';
import {placeTip, tipRow} from './hover.js';
import {colors} from './vega.js';
import * as fmt from '../format.js';

const ROW = 26, LEFT = 120, TOP = 6, BOTTOM = 26;
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800].map((s) => s * 1000);

export class Timeline {
  /* on.open(trial) */
  constructor(el, on) {
    this.el = el;
    this.on = on;
    this.canvas = h('canvas', {role: 'img', tabindex: '0'});
    this.tip = h('div.tip', {hidden: true});
    el.classList.add('timeline');
    fill(el, this.canvas, this.tip);
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('click', (event) => { const bar = this.at(event); if (bar) this.on.open(bar[0]); });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(el);
  }

  destroy() { this.observer.disconnect(); }

  /* alive: a controller runs the trials that are marked running; else each ends where it reported last, live_s(trial) after its start. */
  set(timeline, alive = true, live_s = () => null) {
    if (!alive) for (const device of timeline.devices) device.rows = device.rows.map((r) => (r[1] === 'running' ? [r[0], 'cut off', r[2], r[2] + 1000 * (live_s(r[0]) ?? 0)] : r));
    this.devices = timeline.devices.flatMap((device) => this.lanes(device));
    const starts = timeline.devices.flatMap((d) => d.rows.map((r) => r[2]).filter(Boolean));
    this.from = timeline.from_ms ?? Math.min(...starts);
    this.to = Math.max(timeline.to_ms ?? 0, ...(alive ? [] : timeline.devices.flatMap((d) => d.rows.map((r) => r[3] ?? 0).slice(-8))), timeline.devices.some((d) => d.rows.some((r) => r[1] === 'running')) ? Date.now() : 0, this.from + 1000);
    this.draw();
  }

  /* Trials that share a device at a time are drawn below each other. */
  lanes(device) {
    const lanes = [], rows = [...device.rows].filter((r) => r[2]).sort((a, b) => a[2] - b[2]);
    for (const row of rows) {
      let lane = lanes.find((l) => (l.at(-1)[3] ?? Infinity) <= row[2]);
      if (!lane) lanes.push(lane = []);
      lane.push(row);
    }
    return lanes.map((lane, k) => ({label: k ? '' : device.device || 'device not known', rows: lane}));
  }

  draw() {
    if (!this.devices || this.el.clientWidth < 60) return;
    const c = colors(), width = this.el.clientWidth, height = TOP + BOTTOM + ROW * Math.max(1, this.devices.length);
    const ctx = canvasContext(this.canvas, width, height);
    this.left = width < 560 ? 84 : LEFT;
    this.width = width;
    ctx.font = '12px system-ui, sans-serif';
    const span = this.to - this.from, room = width - this.left - 8, x = (ms) => this.left + room * (ms - this.from) / span;
    this.x = x;
    const step = STEPS.find((s) => span / s <= (width < 560 ? 3 : 8)) ?? STEPS.at(-1);
    const zone = new Date(this.from).getTimezoneOffset() * 60000;
    ctx.fillStyle = c.soft;
    ctx.textAlign = 'center';
    for (let t = Math.ceil((this.from - zone) / step) * step + zone; t <= this.to; t += step) {
      ctx.fillStyle = c.line;
      ctx.fillRect(x(t), TOP, 1, height - TOP - BOTTOM + 4);
      ctx.fillStyle = c.soft;
      ctx.fillText(step < 60000 ? fmt.clock(t) : fmt.time(t).slice(11), Math.min(x(t), width - 18), height - 7);
    }
    this.devices.forEach((device, k) => {
      const y = TOP + k * ROW;
      ctx.textAlign = 'left';
      ctx.fillStyle = c.soft;
      let label = device.label;
      while (label.length > 4 && ctx.measureText(label).width > this.left - 12) label = `${label.slice(0, -2)}…`;
      ctx.fillText(label, 0, y + ROW / 2 + 4);
      for (const [, state, start, end] of device.rows) {
        const a = x(start), b = Math.max(a + 1, x(end ?? this.to));
        const gap = b - a > 3 ? 0.8 : 0;
        ctx.globalAlpha = state === 'done' ? 0.75 : 1;
        ctx.fillStyle = state === 'failed' || state === 'lost' || state === 'cut off' ? c.bad : state === 'stopped' ? c.dim : state === 'running' ? c.model : c.main;
        /* half of the height for what did not end well: distinct without colour */
        const lower = state === 'failed' || state === 'lost' || state === 'cut off', half = lower || state === 'stopped';
        ctx.fillRect(a, lower ? y + ROW / 2 : y + 4, b - a - gap, half ? ROW / 2 - 4 : ROW - 8);
      }
      ctx.globalAlpha = 1;
    });
    this.canvas.setAttribute('aria-label', `Timeline from ${fmt.time(this.from)} to ${fmt.time(this.to)}: ${this.devices.map((d) => `${d.label} ran ${d.rows.length} trials`).join(', ')}`);
  }

  at(event) {
    const [px, py] = pointerAt(event, this.canvas), device = this.devices?.[Math.floor((py - TOP) / ROW)];
    return device?.rows.find(([, , start, end]) => px >= this.x(start) - 1 && px <= Math.max(this.x(start) + 2, this.x(end ?? this.to)));
  }

  point(event) {
    const bar = this.at(event);
    this.tip.hidden = !bar;
    this.canvas.style.cursor = bar ? 'pointer' : '';
    if (!bar) return;
    const [trial, state, start, end] = bar;
    fill(this.tip, h('div.tip-head', null, `Trial ${trial}`, h('small', null, ` ${state}`)),
      tipRow('from', fmt.clock(start)), tipRow('for', fmt.duration(((end ?? Date.now()) - start) / 1000)));
    placeTip(this.tip, ...pointerAt(event, this.canvas));
  }
}
