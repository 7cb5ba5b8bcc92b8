/* colour.js - the colour of a trial by any of its numbers or words: a ramp of steps that differ in lightness, or a colour for each word. */
import {h} from '../dom.js';
import {axisValue} from '../study/study_data.js';
import {toUnit} from './scale.js';
import {colors} from './vega.js';
import * as fmt from '../format.js';

const STEPS = 9, WORDS_MAX = 6;
const RAMP = {light: ['#2c0f5e', '#6d2a8c', '#b1407f', '#e06a55', '#e9a63a'], dark: ['#6d5be0', '#b45ccb', '#ee7390', '#ffa65f', '#ffe28c']};
const WORDS = ['state', 'origin', 'device', 'env'];

const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

export function rampColour(u) {
  const ramp = RAMP[matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'], at = Math.max(0, Math.min(1, u)) * (ramp.length - 1), k = Math.min(ramp.length - 2, Math.floor(at));
  const [a, b] = [rgb(ramp[k]), rgb(ramp[k + 1])];
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * (at - k))).join(',')})`;
}

/* [key, label] of all that a colour may stand for. */
export function colourKeys(data) {
  return [['score', `${data.metric} of the run`], ['expected', `expected ${data.metric}`], ['cost', 'cost'], ['number', 'order'], ...(data.objective ? [['objective', data.objective.metric]] : []),
    ...WORDS.filter((key) => key !== 'env' || data.study.space.envs).map((key) => [key, key === 'env' ? 'game' : key]), ...data.params.map((p) => [p.key, p.key])];
}

function ofWords(words, n) {
  const counts = new Map(), c = colors();
  for (let i = 0; i < n; i++) if (words(i)) counts.set(words(i), (counts.get(words(i)) ?? 0) + 1);
  const names = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name).slice(0, WORDS_MAX);
  return {bin: Uint8Array.from({length: n}, (_, i) => (names.includes(words(i)) ? names.indexOf(words(i)) : 255)), colours: names.map((_, k) => c.series[k]), names};
}

/* {bin (n): a step or 255, colours, legend()}; null: no trial differs. */
export function colourBy(data, key) {
  const param = data.params.find((p) => p.key === key), label = colourKeys(data).find(([k]) => k === key)?.[1] ?? key;
  const swatch = (colour) => { const mark = h('i.mark', {'aria-hidden': 'true'}); mark.style.background = colour; return mark; };
  if (WORDS.includes(key) || param?.choices) {
    const w = ofWords(param ? (i) => (data.column[key][i] === null ? '' : String(data.column[key][i])) : (i) => (key === 'device' ? data.column.device[i] || '' : data.column[key][i] || ''), data.n);
    return {...w, legend: () => w.names.map((name, k) => h('span.key', {'data-key': name}, swatch(w.colours[k]), name))};
  }
  const values = Array.from({length: data.n}, (_, i) => axisValue(data, key, i)), known = values.filter((v) => Number.isFinite(v) && (key !== 'cost' || v > 0));
  if (!known.length) return null;
  const axis = param ?? {scale: key === 'cost' ? 'log' : 'linear', min: known.reduce((a, b) => Math.min(a, b)), max: known.reduce((a, b) => Math.max(a, b))};
  const bin = Uint8Array.from(values, (v) => { const u = toUnit(axis, v); return Number.isFinite(u) ? Math.max(0, Math.min(STEPS - 1, Math.floor(u * STEPS))) : axis.max === axis.min && Number.isFinite(v) ? 0 : 255; });
  const colours = Array.from({length: STEPS}, (_, k) => rampColour(k / (STEPS - 1))), show = (v) => (key === 'cost' ? fmt.cost(v, data.costUnit) : fmt.number(v));
  const legend = () => {
    const bar = h('i.ramp', {role: 'img', 'aria-label': `${label} from ${show(axis.min)} to ${show(axis.max)}`});
    bar.style.background = `linear-gradient(90deg, ${colours.join(',')})`;
    return [h('span.small.soft', null, show(axis.min)), bar, h('span.small.soft', null, show(axis.max))];
  };
  return {bin, colours, legend};
}

/* Calls draw(name, colour, trials) for each step that some of these have; those without one come as plain. */
export function byColour(colour, trials, plain, draw) {
  if (!colour) { draw('plain', plain, trials); return; }
  const groups = new Map();
  for (const i of trials) { const k = colour.bin[i]; if (!groups.has(k)) groups.set(k, []); groups.get(k).push(i); }
  for (const [k, list] of groups) draw(`step ${colour.colours[k] ?? 'none'}`, colour.colours[k] ?? plain, list);
}
