/* lanes.js - what runs now: for each slot its trial, live curve, predicted score and end, and the share of time in which it stood idle. */
import {get, studyPath} from '../api.js';
import {fill, h, table} from '../dom.js';
import {trialUrl} from '../address.js';
import {sparkline} from '../charts/seeds.js';
import * as fmt from '../format.js';

const idle = (slot) => (slot && slot.busy_s + slot.idle_s > 0 ? fmt.percent(slot.idle_s / (slot.busy_s + slot.idle_s)) : '–');

function row(data, r, slots, alive) {
  const end = r.left_s !== null && alive ? `in ${fmt.duration(r.left_s)}` : '–';
  return h('tr', null, h('td', null, r.slot || r.device || '–'), h('td', null, h('a', {href: trialUrl(data.name, r.trial)}, `#${r.trial}`), r.origin === 'confirm' && h('span.tag', null, 'fresh seed'), r.attempt > 1 && h('small.soft', null, ` attempt ${r.attempt}`)),
    h('td', null, sparkline(r.curve)), h('td.num', null, fmt.number(r.score)),
    h('td.num', {title: r.expected === null ? 'the model has not seen this trial yet' : null}, r.expected === null ? '–' : [fmt.number(r.expected), h('small', null, fmt.interval(r.expected_lo, r.expected_hi))]),
    h('td.num', null, r.env_steps ? fmt.compact(r.env_steps) : '–'), h('td.num', null, fmt.duration(r.wall_s)), h('td.num', null, end), h('td.num', null, idle(slots.find((s) => s.slot === r.slot))));
}

function nodeRow(n) {
  return h('tr', null, h('td', null, n.name), h('td', null, n.state), h('td.num', null, n.running), h('td.num', null, n.done), h('td.num', null, fmt.duration(n.silent_s)),
    h('td', null, [n.host, n.device, n.job && `job ${n.job}`].filter(Boolean).join(', ')));
}

/* "2 running, about 12 min left". */
export function lanesText(answer) {
  if (!answer.running.length) return '';
  if (answer.state === 'interrupted') return `${answer.running.length} cut off`;
  return `${answer.running.length} running${answer.left_s !== null ? `, about ${fmt.duration(answer.left_s)} left` : ''}`;
}

export async function readLanes(data, signal) {
  return get(studyPath(data.name, '/lanes'), null, signal);
}

export function showLanes(el, data, answer) {
  const alive = answer.state !== 'interrupted', free = answer.slots.filter((s) => !answer.running.some((r) => r.slot === s.slot));
  if (!answer.running.length && !alive) return;
  fill(el, answer.running.length ? table(['slot', 'trial', 'curve', ...[`${data.metric} now`, 'expected', 'env steps', 'for', alive ? 'ends' : 'cut off', 'idle'].map((num) => ({num}))],
    answer.running.map((r) => row(data, r, answer.slots, alive)), {kind: '.lanes'}) : h('p.soft', null, 'Nothing runs now.'),
  !alive && h('p.warn', null, 'No controller runs these trials: they were cut off, and run again when the study continues.'),
  answer.nodes.length > 0 && table(['node', 'state', {num: 'running'}, {num: 'done'}, {num: 'silent for'}, 'where'], answer.nodes.map(nodeRow), {kind: '.nodes'}),
  free.length > 0 && h('p.soft.small', null, `Idle before: ${free.map((s) => `${s.slot} ${idle(s)} over ${s.trials} trials`).join(', ')}.`));
}
