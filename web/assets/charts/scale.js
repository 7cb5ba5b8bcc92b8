/* scale.js - the scales of a search space: a value's place between 0 and 1, the value at a place, and ticks. */
import * as fmt from '../format.js';

const logit = (p) => Math.log(p / (1 - p));
const clampShare = (p) => Math.min(Math.max(p, 1e-9), 1 - 1e-9);

export function toUnit(axis, value) {
  if (axis.scale === 'log' || axis.scale === 'pow2') return Math.log(value / axis.min) / Math.log(axis.max / axis.min);
  if (axis.scale === 'logit') return (logit(clampShare(value)) - logit(clampShare(axis.min))) / (logit(clampShare(axis.max)) - logit(clampShare(axis.min)));
  return (value - axis.min) / (axis.max - axis.min);
}

export function fromUnit(axis, u) {
  if (axis.scale === 'log' || axis.scale === 'pow2') return axis.min * (axis.max / axis.min) ** u;
  if (axis.scale === 'logit') return 1 / (1 + Math.exp(-(logit(clampShare(axis.min)) + u * (logit(clampShare(axis.max)) - logit(clampShare(axis.min))))));
  return axis.min + u * (axis.max - axis.min);
}

function niceStep(span, n) {
  const raw = span / n, size = 10 ** Math.floor(Math.log10(raw));
  return size * ([1, 2, 5, 10].find((m) => m * size >= raw) ?? 10);
}

/* [{at: 0..1, label}] */
export function ticks(axis, n = 5) {
  let values = [];
  if (axis.choices) return axis.choices.map((choice, i) => ({at: toUnit(axis, i), label: String(choice)}));
  if (axis.scale === 'pow2') {
    for (let p = Math.ceil(Math.log2(axis.min) - 1e-9); p <= Math.log2(axis.max) + 1e-9; p++) values.push(2 ** p);
  } else if (axis.scale === 'log') {
    for (const set of [[1], [1, 3], [1, 2, 5]]) {
      values = [];
      for (let e = Math.floor(Math.log10(axis.min)); e <= Math.log10(axis.max); e++) for (const m of set) values.push(Number(`${m}e${e}`));
      values = values.filter((v) => v >= axis.min * 0.999 && v <= axis.max * 1.001);
      if (values.length >= 3) break;
    }
  } else if (axis.scale === 'logit') {
    values = [0.001, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 0.99999].filter((v) => v >= axis.min && v <= axis.max);
  }
  if (values.length < 2) {
    const step = niceStep(axis.max - axis.min, n);
    values = [];
    for (let k = Math.ceil(axis.min / step - 1e-9); k * step <= axis.max + step * 1e-9; k++) values.push(Number((k * step).toPrecision(10)));
  }
  const every = Math.ceil(values.length / (n + 1));
  return values.filter((_, i) => i % every === 0).map((v) => ({at: toUnit(axis, v), label: axis.isTime ? fmt.duration(v) : fmt.number(v)}));
}
