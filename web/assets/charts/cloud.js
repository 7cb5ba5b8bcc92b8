/* cloud.js - thousands of marks on a canvas of their own, under a chart of Vega: each mark is stamped from a small picture,
 * which keeps zooming smooth at 10,000 trials; one scene graph item a trial does not. */

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

export const MARKS = {
  ring(color, alpha) {
    return (ctx) => {
      ctx.globalAlpha = alpha;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.1;
      ctx.beginPath();
      ctx.arc(0, 0, 3.2, 0, 2 * Math.PI);
      ctx.stroke();
    };
  },
  dot(color, alpha, r = 2) {
    return (ctx) => {
      ctx.globalAlpha = alpha;
      ctx.fillStyle = color;
      ctx.beginPath();
      ctx.arc(0, 0, r, 0, 2 * Math.PI);
      ctx.fill();
    };
  },
  /* A dot with a rim. */
  disc(color, rim, r) {
    return (ctx) => {
      ctx.fillStyle = color;
      ctx.strokeStyle = rim;
      ctx.lineWidth = 1.3;
      ctx.beginPath();
      ctx.arc(0, 0, r, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
    };
  },
  cross(color, alpha) {
    return (ctx) => {
      ctx.globalAlpha = alpha;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.7;
      ctx.beginPath();
      ctx.moveTo(-3.6, -3.6);
      ctx.lineTo(3.6, 3.6);
      ctx.moveTo(-3.6, 3.6);
      ctx.lineTo(3.6, -3.6);
      ctx.stroke();
    };
  },
  /* A ring with a bar across. */
  barred(color, alpha) {
    return (ctx) => {
      ctx.globalAlpha = alpha;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.2;
      ctx.beginPath();
      ctx.arc(0, 0, 3.2, 0, 2 * Math.PI);
      ctx.moveTo(-3.8, 3.8);
      ctx.lineTo(3.8, -3.8);
      ctx.stroke();
    };
  },
  triangle(color, alpha) {
    return (ctx) => {
      ctx.globalAlpha = alpha;
      ctx.strokeStyle = color;
      ctx.lineWidth = 1.4;
      ctx.beginPath();
      ctx.moveTo(-4, -3.2);
      ctx.lineTo(4, -3.2);
      ctx.lineTo(0, 4);
      ctx.closePath();
      ctx.stroke();
    };
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
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(height * this.scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
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
