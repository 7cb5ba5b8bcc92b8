/* study_progress.js - what runs now, improvement over time, fresh seeds against predictions, the trials of each device, failures. */
import {get, getSlow, studyPath} from '../api.js';
import {card, empty, fill, h, renew, segments, table} from '../dom.js';
import {go, setState, state, studyUrl, trialUrl} from '../address.js';
import {showCalibration} from '../charts/calibration.js';
import {seriesKey, showLines} from '../charts/lines.js';
import {Timeline} from '../charts/timeline.js';
import {readLanes, showLanes} from './lanes.js';
import * as fmt from '../format.js';

const OVER = [['trials', 'Trials'], ['elapsed_s', 'Time'], ['cost_total_s', 'Cost spent']];
const XTITLE = {trials: 'trials', elapsed_s: 'time since the start', cost_total_s: 'time spent on trials'};

function reasons(data, failures) {
  if (!failures.trials) return h('p.soft', null, 'No trial failed.');
  return [table([{num: 'trials'}, 'why', 'such as'], [failures.reasons.map((r) => h('tr', null, h('td.num', null, r.trials), h('td.wrap', null, r.reason), h('td', null, h('a', {href: trialUrl(data.name, r.first)}, `#${r.first}`)))),
    failures.other > 0 && h('tr', null, h('td.num', null, failures.other), h('td', null, 'other reasons'), h('td'))]),
  failures.rules.map((rule) => h('p', null, rule)),
  h('p', null, h('a', {href: studyUrl(data.name, {tab: 'trials', state: 'failed'})}, 'All failed trials in the table'))];
}

export async function show(el, data, ctx) {
  const hvEl = h('div.chart'), bestEl = h('div.chart'), timeEl = h('div.chart'), whyEl = h('div'), nowEl = h('div'), fitEl = h('div.chart'), fitNote = h('p.soft.small'), proposalsNote = h('p.soft.small');
  const nowCard = card('Running now', nowEl, {id: 'lanes'});
  nowCard.hidden = true;
  let over = OVER.some(([key]) => key === state().get('over')) ? state().get('over') : 'trials', answer = null;
  const shown = new Set();
  const choose = segments('over what', OVER, over, (key) => { over = key; setState({over: key === 'trials' ? null : key}); draw(); });
  fill(el, nowCard, h('div.halves', null, card('Hypervolume', [hvEl, h('div.legend', null, seriesKey(0, 'expected'), seriesKey(1, 'of single runs'))], {extra: choose, note: 'of the front, against its fixed reference'}), card(`Best config so far: ${data.metric}`, [bestEl, h('div.legend', null, seriesKey(0, 'expected, by what is known now'), seriesKey(1, 'best single run, which may be luck'))])),
    card('Predictions against fresh seeds', [fitEl, fitNote, proposalsNote], {id: 'calibration', note: 'each run of a config that had a result before'}),
    card('Devices', timeEl, {note: 'full bars: done; upper half: stopped early; lower half: failed'}), card('Why trials failed', whyEl));
  const timeline = new Timeline(timeEl, {open: (i) => go(trialUrl(data.name, i))});

  async function draw() {
    const column = (name) => answer.rows.map((row) => row[answer.columns.indexOf(name)]);
    const x = column(over), options = {xTitle: XTITLE[over], time: over !== 'trials', whole: over === 'trials'};
    if (!x.length) { fill(hvEl, empty('No trial has ended yet.')); fill(bestEl); return; }
    const pair = (expected, run) => [{label: 'expected', x, y: column(expected), step: true}, {label: 'single runs', x, y: column(run), step: true}];
    shown.add(await showLines(hvEl, pair('expected_hypervolume', 'hypervolume'), {...options, zero: true, label: `Hypervolume over ${XTITLE[over]}`}));
    shown.add(await showLines(bestEl, pair('expected_best', 'best_score'), {...options, label: `Best expected ${data.metric} and best single run over ${XTITLE[over]}`}));
  }
  async function calibrate() {
    const c = await getSlow(studyPath(data.name, '/calibration'), null, ctx.signal);
    const column = (row, name) => row[c.columns.indexOf(name)], rows = c.rows.map((row) => Object.fromEntries(c.columns.map((name) => [name, column(row, name)])));
    fit?.destroy();
    fit = null;
    fill(proposalsNote, c.proposals.text && `Predictions: ${c.proposals.text}.`);
    if (!rows.length) { fill(fitEl, empty('No config has been run again yet.', h('p.soft', null, 'Runs under fresh seeds appear here, beside what was predicted of them.'))); return; }
    fit = await showCalibration(fitEl, rows, data.metric);
    fill(fitNote, `${c.inside} of ${rows.length} fresh runs lie in the 95 % interval that was predicted for one run before it was made${c.left_out ? `; the ${c.left_out} before them are left out` : ''}.`);
  }
  async function read() {
    const [hypervolume, devices, briefing] = await Promise.all([get(studyPath(data.name, '/hypervolume'), {points: 240}, ctx.signal), get(studyPath(data.name, '/timeline'), null, ctx.signal),
      get(studyPath(data.name, '/briefing'), null, ctx.signal)]);
    answer = hypervolume;
    await draw();
    if (devices.devices.length) timeline.set(devices, data.study.state !== 'interrupted' && data.study.state !== 'idle', (i) => data.column.live_s[i]);
    else fill(timeEl, empty('No trial has run yet.'));
    renew(whyEl, reasons(data, briefing.failures));
  }
  const lanes = (answer) => { nowCard.hidden = !answer.running.length && answer.state !== 'running'; if (!nowCard.hidden) showLanes(nowEl, data, answer); };
  let fit = null;
  await read();
  lanes(await readLanes(data, ctx.signal));
  const fitted = () => calibrate().catch((problem) => { if (!ctx.signal.aborted) fill(fitEl, h('p.warn', null, problem.message)); });
  fitted();
  return {update: read, lanes, model: fitted, destroy() { timeline.destroy(); fit?.destroy(); for (const chart of shown) chart.destroy(); }};
}
