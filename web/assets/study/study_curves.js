/* study_curves.js - learning curves of the chosen trials; without a choice those of the front. */
import {get, studyPath} from '../api.js';
import {go, setState, state, trialUrl} from '../address.js';
import {card, empty, fill, h, segments} from '../dom.js';
import {Curves} from '../charts/curves.js';
import {OVER} from '../charts/lines.js';

const TRIALS_MAX = 60, POINTS = 120, AT_ONCE = 4;

export async function show(el, data, ctx) {
  const {selection} = ctx, chartEl = h('div.chart'), note = h('p.soft.small', {role: 'status'});
  let over = state().get('over') === 'wall_s' ? 'wall_s' : 'env_steps', metric = state().get('metric'), names = [], turn = 0;
  const pick = h('select', {'aria-label': 'which number', onchange: () => { metric = pick.value; setState({metric: metric === names[0] ? null : metric}); kept.clear(); draw(); }});
  const choose = segments('over what', OVER, over, (key) => { over = key; setState({over: key === 'env_steps' ? null : key}); draw(); });
  const kept = new Map(); /* trial: curve */
  const chart = new Curves(chartEl, data, {open: (i) => go(trialUrl(data.name, i))});
  fill(el, card('Learning curves', [chartEl, note], {id: 'all-curves', extra: [pick, choose], note: 'of the trials that are chosen; of the front where none are'}));

  function wanted() {
    const began = (i) => data.state[i] !== 'queued';
    const all = selection.mask ? selection.list().filter(began) : data.front, every = Math.ceil(all.length / TRIALS_MAX);
    return [all.length, every > 1 ? all.filter((_, k) => k % every === 0) : all];
  }
  async function read(i) {
    const {curves} = await get(studyPath(data.name, `/trials/${i}/curves`), {metrics: metric || undefined, points: POINTS}, ctx.signal);
    return Object.values(curves)[0] ?? {env_steps: [], wall_s: [], value: []};
  }
  async function namesOf(i) {
    const answer = await get(studyPath(data.name, `/trials/${i}`), null, ctx.signal), all = answer.metrics ?? [], main = all.find((name) => name === data.metric || name.endsWith(`/${data.metric}`));
    names = main ? [main, ...all.filter((name) => name !== main)] : all;
    if (!names.includes(metric)) metric = names[0] ?? null;
    fill(pick, names.map((name) => h('option', {value: name}, name)));
    pick.value = metric;
  }
  async function draw() {
    const mine = ++turn, [n, trials] = wanted();
    for (let k = trials.length - 1; k >= 0 && !names.length; k--) await namesOf(trials[k]); /* some have left no curve */
    const queue = trials.filter((i) => !kept.has(i) || data.state[i] === 'running');
    await Promise.all(Array.from({length: AT_ONCE}, async () => { for (let i = queue.shift(); i !== undefined && mine === turn; i = queue.shift()) kept.set(i, await read(i)); }));
    if (mine !== turn || ctx.signal.aborted) return;
    chart.show(trials.map((i) => ({trial: i, x: kept.get(i)[over], y: kept.get(i).value})), metric ?? data.metric, over === 'wall_s' ? 'time of training' : 'env steps', over === 'wall_s', selection);
    chartEl.hidden = !chart.curves.length;
    fill(note, chart.curves.length ? `${chart.curves.length} of ${n} trials${trials.length < n ? ', evenly taken from them' : ''}${chart.curves.length < trials.length ? `; ${trials.length - chart.curves.length} left no curve` : ''}.` : empty('No curve to show yet.', h('p.soft', null, 'It comes with the first trial that reports.')));
  }
  await draw();
  return {update: draw, selected: draw, running: () => {}, destroy: () => chart.destroy()};
}
