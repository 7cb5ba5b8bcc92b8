/* study_progress.js - improvement over time, the trials of each device, failures. */
import {get, studyPath} from './api.js';
import {card, empty, fill, h} from './dom.js';
import {go, setState, state, studyUrl, trialUrl} from './app.js';
import {showLines} from './charts/lines.js';
import {Timeline} from './charts/timeline.js';
import * as fmt from './format.js';

const OVER = [['trials', 'Trials'], ['elapsed_s', 'Time'], ['cost_total_s', 'Cost spent']];
const XTITLE = {trials: 'trials', elapsed_s: 'time since the start', cost_total_s: 'time spent on trials'};
const REASONS = 8;

function reasons(data) {
  const count = new Map();
  for (let i = 0; i < data.n; i++) {
    if (data.state[i] !== 'failed' && data.state[i] !== 'lost') continue;
    const why = data.column.reason[i] || 'no reason known';
    if (!count.has(why)) count.set(why, []);
    count.get(why).push(i);
  }
  const top = [...count].sort((a, b) => b[1].length - a[1].length);
  if (!top.length) return h('p.soft', null, 'No trial failed.');
  return h('div.scroll', null, h('table', null, h('thead', null, h('tr', null, h('th.num', null, 'trials'), h('th', null, 'why'), h('th', null, 'such as'))),
    h('tbody', null, top.slice(0, REASONS).map(([why, trials]) => h('tr', null, h('td.num', null, trials.length), h('td.wrap', null, why),
      h('td', null, trials.slice(-3).map((i) => [h('a', {href: trialUrl(data.name, i)}, `#${i}`), ' '])))))),
  h('p', null, h('a', {href: studyUrl(data.name, {tab: 'trials', state: 'failed'})}, 'All failed trials in the table')));
}

export async function show(el, data, ctx) {
  const hvEl = h('div.chart'), bestEl = h('div.chart'), timeEl = h('div.chart'), whyEl = h('div'), hvNote = h('p.soft.small');
  let over = OVER.some(([key]) => key === state().get('over')) ? state().get('over') : 'trials', answer = null, shown = [];
  const choose = h('div.segments', {role: 'radiogroup', 'aria-label': 'over what'}, OVER.map(([key, label]) => h('label', null,
    h('input', {type: 'radio', name: 'over', value: key, checked: key === over, onchange: () => { over = key; setState({over: key === 'trials' ? null : key}); draw(); }}), h('span', null, label))));
  fill(el, h('div.halves', null, card('Hypervolume', [hvEl, hvNote], {extra: choose, note: 'of the front, against its fixed reference'}), card(`Best single run: ${data.metric}`, bestEl)),
    card('Devices', timeEl, {note: 'full bars: done; upper half: stopped early; lower half: failed'}), card('Why trials failed', whyEl));
  const timeline = new Timeline(timeEl, {open: (i) => go(trialUrl(data.name, i))});

  async function draw() {
    for (const chart of shown.splice(0)) chart.destroy();
    const column = (name) => answer.rows.map((row) => row[answer.columns.indexOf(name)]);
    const x = column(over), options = {xTitle: XTITLE[over], time: over !== 'trials'};
    if (!x.length) { fill(hvEl, empty('No trial has ended yet.')); fill(bestEl); return; }
    shown.push(await showLines(hvEl, [{label: 'hypervolume', x, y: column('hypervolume'), step: true}], {...options, zero: true, label: `Hypervolume over ${XTITLE[over]}`}));
    shown.push(await showLines(bestEl, [{label: 'best', x, y: column('best_score'), step: true}], {...options, label: `Best ${data.metric} of a single run over ${XTITLE[over]}`}));
    const hv = column('hypervolume').filter(Number.isFinite), trials = column('trials');
    if (hv.length > 8 && hv.at(-1) > 0) {
      const k = Math.floor(hv.length * 0.75), gain = (hv.at(-1) - hv[k]) / hv.at(-1);
      fill(hvNote, `The last quarter of the trials (from ${trials[k]}) brought ${fmt.percent(Math.max(0, gain))} of it: ${gain < 0.01 ? 'more of the same will change little; widen the space or stop' : 'the search still finds better ones'}.`);
    }
  }
  async function read() {
    const [hypervolume, devices] = await Promise.all([get(studyPath(data.name, '/hypervolume'), {points: 240}, ctx.signal), get(studyPath(data.name, '/timeline'), null, ctx.signal)]);
    answer = hypervolume;
    await draw();
    if (devices.devices.length) timeline.set(devices);
    else fill(timeEl, empty('No trial has run yet.'));
    fill(whyEl, reasons(data));
  }
  await read();
  return {update: read, destroy() { timeline.destroy(); for (const chart of shown) chart.destroy(); }};
}
