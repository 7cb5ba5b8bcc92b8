/* format.js - numbers with units, local times. The decimal point is always a point, as in trawl's files. */

const DASH = '–';

function trim(text) {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/* Four significant digits. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  if (typeof value !== 'number') return String(value);
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e5) return compact(value);
  if (size < 1e-3) return trim(value.toExponential(3).replace(/\.?0+e/, 'e').replace('e-', 'e-'));
  return trim(value.toFixed(Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))))));
}

export function compact(value) {
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (size >= limit) return trim((value / limit).toPrecision(4)) + unit;
  return number(value);
}

export function integer(value) {
  return value === null || value === undefined ? DASH : String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  const size = Math.abs(seconds);
  if (size < 59.95) return `${size >= 10 ? trim(seconds.toFixed(1)) : size >= 1 ? trim(seconds.toFixed(2)) : number(Number(seconds.toPrecision(3)))} s`;
  const s = Math.round(size);
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ''}`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h${Math.floor(s % 3600 / 60) ? ` ${Math.floor(s % 3600 / 60)} min` : ''}`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/* A cost in the unit of its study: seconds, env steps, or one that only the study's program knows. */
export function cost(value, unit) {
  if (unit === 's' || value === null || Number.isNaN(value)) return duration(value);
  return unit === 'steps' ? `${compact(value)} steps` : number(value);
}

const two = (n) => String(n).padStart(2, '0');

export function time(ms) {
  if (!ms) return DASH;
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

export function clock(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function ago(ms, now = Date.now()) {
  if (!ms) return DASH;
  const s = Math.max(0, (now - ms) / 1000);
  return s < 5 ? 'now' : `${duration(s < 60 ? Math.round(s) : s < 3600 ? Math.round(s / 60) * 60 : s)} ago`;
}

export function interval(lo, hi) {
  return `${number(lo)} to ${number(hi)}`;
}

/* A text of the server's, as a sentence. */
export function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

/* The number of runs in a promise's estimate. */
export function seeds(n, mean) {
  return n > 1 ? `${n} seeds, mean ${number(mean)}` : n === 1 ? 'seen once' : 'not seen yet';
}

export function percent(share) {
  return `${share >= 0.0995 ? Math.round(share * 100) : trim((share * 100).toFixed(1))} %`;
}

/* Seven digits, for bounds near 1: 0.99999 must not read 1. */
export function exact(value) {
  return typeof value === 'number' && Number.isFinite(value) ? String(Number(value.toPrecision(7))) : number(value);
}
