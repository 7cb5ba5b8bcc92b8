/* vega.js - Vega from the distribution's package, as one script made at build time, and helpers of all charts.
 *
 * Expressions are interpreted (vega-interpreter), never compiled: the pages forbid eval. */
import {asset} from '../address.js';

let loading = null;

function vega() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = asset('vega.js');
    script.onload = () => (window.vega?.View ? resolve(window.vega) : reject(new Error('vega.js holds no Vega')));
    script.onerror = () => reject(new Error('vega.js did not load'));
    document.head.append(script);
  });
  return loading;
}

/* -- looks -- */

export function colors() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return {ink: get('ink'), soft: get('soft'), line: get('line'), axis: get('axis'), main: get('main'), dim: get('dim'),
    bad: get('bad'), card: get('card'), reach: get('reach'), model: get('model'),
    series: [1, 2, 3, 4, 5, 6].map((i) => get(`series-${i}`))};
}
export const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4]];

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function config(c) {
  return {
    background: null,
    axis: {labelColor: c.soft, titleColor: c.soft, gridColor: c.line, domainColor: c.axis, tickColor: c.line, labelFont: FONT,
      titleFont: FONT, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal', labelPadding: 5, tickSize: 4},
    text: {font: FONT, fill: c.soft},
    style: {'guide-label': {font: FONT, fill: c.soft}},
  };
}

/* Shows spec in el, as wide as el; returns {view, destroy}. label: the text for screen readers. */
export async function mount(el, spec, label) {
  const {parse, View, expressionInterpreter} = await vega();
  const full = {autosize: {type: 'fit', contains: 'padding'}, padding: 4,
    ...spec, config: config(colors()), width: spec.fixedWidth || Math.max(200, el.clientWidth)};
  delete full.fixedWidth;
  delete full.tooltip;
  el.setAttribute('role', 'img');
  el.setAttribute('aria-label', label);
  const view = new View(parse(full, null, {ast: true}), {expr: expressionInterpreter, renderer: 'canvas', container: el, hover: false, ...(spec.tooltip ? {tooltip: spec.tooltip} : {})});
  view.logLevel(1);
  await view.runAsync();
  let last = el.clientWidth;
  const observer = new ResizeObserver(() => {
    if (spec.fixedWidth || el.clientWidth === last || el.clientWidth < 40) return;
    last = el.clientWidth;
    view.width(Math.max(200, last)).runAsync();
  });
  observer.observe(el);
  return {view, destroy() { observer.disconnect(); view.finalize(); el.replaceChildren(); }};
}

/* Axis labels of seconds, at round clock times. */
export const SECONDS_LABEL = "datum.value >= 86400 ? format(datum.value / 86400, '~r') + ' d' : datum.value >= 3600 ? format(datum.value / 3600, '~r') + ' h' : datum.value >= 60 ? format(datum.value / 60, '~r') + ' min' : format(datum.value, '~r') + ' s'";
const CLOCK = [];
for (let e = -6; e <= 1; e++) for (const m of [1, 2, 5]) if (m * 10 ** e < 60) CLOCK.push(Number(`${m}e${e}`));
CLOCK.push(20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000, 864000, 8640000);
CLOCK.sort((a, b) => a - b);

/* Round values between lo and hi for a log axis, at most about n. */
export function logTicks(lo, hi, n, isTime) {
  let ticks = [];
  if (isTime) ticks = CLOCK.filter((v, i) => v >= lo && v <= hi && CLOCK.indexOf(v) === i);
  else for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e++) for (const m of [1, 2, 5]) {
    const v = Number(`${m}e${e}`);
    if (v >= lo && v <= hi) ticks.push(v);
  }
  const every = Math.ceil(ticks.length / n);
  return every > 1 ? ticks.filter((_, i) => i % every === 0) : ticks;
}

/* Round seconds, minutes, hours. */
export function timeTicks(hi, n) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].find((s) => hi / s <= n) ?? 2592000;
  const values = [];
  for (let k = 0; k * step <= hi; k++) values.push(Number((k * step).toPrecision(10)));
  return values;
}
