/* cloud.js - thousands of marks on a canvas of their own, under a chart of Vega: each mark is stamped from a small picture,
 * which keeps zooming smooth at 10,000 trials; one scene graph item a trial does not. */

import {canvasContext} from '../dom.js';

const STAMP = 14; /* pixels of a stamp's side, before the screen's scale */

function stamp(draw, scale) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = STAMP * scale;
  const ctx = canvas.getContext('2d');
  ctx.scale(scale, scale);
  ctx.translate(STAMP / 2, STAMP / 2);
  draw(ctx);
  return canvas;
}

/* Strokes a path with this colour and width. */
const stroked = (width, path) => (color, alpha) => (ctx) => {
  Object.assign(ctx, {globalAlpha: alpha, strokeStyle: color, lineWidth: width});
  ctx.stroke(typeof path === 'string' ? new Path2D(path) : path());
};

function circle(r) {
  const path = new Path2D();
  path.arc(0, 0, r, 0, 2 * Math.PI);
  return path;
}

function barred() {
  const path = circle(3.2);
  path.addPath(new Path2D('M-3.8 3.8L3.8-3.8'));
  return path;
}

export const MARKS = {
  ring: stroked(1.1, () => circle(3.2)),
  cross: stroked(1.7, 'M-3.6-3.6L3.6 3.6M-3.6 3.6L3.6-3.6'),
  barred: stroked(1.2, barred), /* a ring with a bar across */
  triangle: stroked(1.4, 'M-4-3.2H4L0 4Z'),
  dot: (color, alpha, r = 2) => (ctx) => {
    Object.assign(ctx, {globalAlpha: alpha, fillStyle: color});
    ctx.fill(circle(r));
  },
  /* A dot with a rim. */
  disc: (color, rim, r) => (ctx) => {
    Object.assign(ctx, {fillStyle: color, strokeStyle: rim, lineWidth: 1.3});
    ctx.fill(circle(r));
    ctx.stroke(circle(r));
  },
};

export class Cloud {
  constructor(parent, className = 'layer') {
    this.canvas = document.createElement('canvas');
    this.canvas.className = className;
    this.canvas.setAttribute('aria-hidden', 'true');
    parent.append(this.canvas);
    this.stamps = new Map();
  }

  resize(width, height) {
    this.scale = Math.min(2, window.devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    canvasContext(this.canvas, width, height);
    this.stamps.clear();
  }

  clear() {
    const ctx = this.canvas.getContext('2d');
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  /* Stamps the mark called name at each x[k], y[k] for k in index (all when null); NaN is left out. */
  draw(name, mark, x, y, index) {
    if (!this.stamps.has(name)) this.stamps.set(name, stamp(mark, this.scale));
    const picture = this.stamps.get(name), ctx = this.canvas.getContext('2d'), s = this.scale, half = STAMP * s / 2;
    const n = index ? index.length : x.length;
    for (let k = 0; k < n; k++) {
      const i = index ? index[k] : k, px = x[i] * s - half, py = y[i] * s - half;
      if (px > -STAMP * s && py > -STAMP * s && px < this.canvas.width && py < this.canvas.height)
        ctx.drawImage(picture, Math.round(px), Math.round(py));
    }
  }
}
