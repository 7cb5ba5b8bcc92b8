/* study.js - one study: the part above all its views, the tabs, and live updates. */
import {get, studyPath} from '../api.js';
import {fill, h, renew, tile} from '../dom.js';
import {state, studyUrl} from '../address.js';
import {Briefing} from './briefing.js';
import {controls} from '../controls.js';
import {lanesText, readLanes} from './lanes.js';
import {follow} from '../live.js';
import {Selection} from './selection.js';
import {StudyData} from './study_data.js';
import {progress, stateChip} from '../studies.js';
import * as fmt from '../format.js';

const TABS = [
  ['front', 'Front', () => import('./study_front.js')],
  ['params', 'Parameters', () => import('./study_params.js')],
  ['trials', 'Trials', () => import('./study_trials.js')],
  ['curves', 'Curves', () => import('./study_curves.js')],
  ['progress', 'Progress', () => import('./study_progress.js')],
  ['all', 'All views', () => import('./study_all.js')],
];

const LANES_MS = 1500;

export function where(ctx) {
  return [ctx.name, [ctx.name]];
}

function tiles(data) {
  const s = data.study, c = data.counts, at = (i) => (i >= 0 && i < data.n && data.score[i] !== null ? i : -1);
  const best = at(data.best), knee = at(data.knee);
  const pick = (i, what, title) => tile(fmt.number(data.place(i).score), [`${data.beliefs.get(i)?.known ? 'expected ' : ''}${data.metric} of the ${what}, trial ${i}`, data.promise(i), data.promisedCost(i)].map((line) => h('span', null, line)), title);
  return h('div.tiles', null,
    best >= 0 && pick(best, 'best', `the interval of the mean of ${s.promise_seeds} runs under fresh seeds`),
    knee >= 0 && knee !== best && pick(knee, 'knee', 'beyond it more cost buys little'),
    tile(String(data.front.length), 'trials on the front'),
    tile(fmt.number(s.hypervolume), 'hypervolume', `of the expected scores and costs, against the reference ${fmt.cost(s.reference?.cost, data.costUnit)}, ${fmt.number(s.reference?.score)}`),
    tile(fmt.duration(s.cost_s), s.budget_s ? `spent of ${fmt.duration(s.budget_s)}` : 'spent on all trials'),
    tile(`${c.done}`, [`done`, c.running && `${c.running} running`, c.stopped && `${c.stopped} stopped`, c.failed + c.lost && `${c.failed + c.lost} failed`].filter(Boolean).join(', ')));
}

export async function show(main, ctx) {
  const version = ctx.version, data = new StudyData(await get(studyPath(ctx.name), null, ctx.signal));
  data.store = version.store_path;
  const head = h('div.page-head'), tilesEl = h('div'), said = h('p.said', {role: 'status', hidden: true}), body = h('div.tab-body'), selectEl = h('div.selection-place');
  const say = (text, bad) => { said.hidden = !text; said.textContent = text; said.classList.toggle('warn', !!bad); };
  const nav = h('nav.tabs', {'aria-label': 'views of this study'});
  const about = h('div'), steer = controls(data, version, say);
  const briefing = new Briefing(data, steer);
  let now = '';
  ctx.onLeave(() => briefing.destroy());
  fill(head, about, steer?.el);
  const drawHead = () => {
    steer?.update();
    renew(about,
      h('h1', null, data.name, ' ', stateChip(data.study.state)),
      h('p.soft', null, [data.study.env, `${data.metric}, ${data.maximize ? 'higher' : 'lower'} is better`, `method ${data.study.method}`, `seed ${data.study.seed}`, data.study.devices.join(', '), `started ${fmt.time(data.study.started_ms)}`].filter(Boolean).join(' · ')),
      h('div.progress-line', null, progress(data.study), h('span.soft.small', null, now), data.study.confirming > 0 && h('span.soft.small', null, `confirming: ${data.study.confirming} run${data.study.confirming > 1 ? 's' : ''} of front configs under fresh seeds`)));
  };
  const drawNav = () => renew(nav, TABS.map(([key, label]) => {
    const params = state();
    key === 'front' ? params.delete('tab') : params.set('tab', key);
    const query = {};
    for (const [k, v] of params) query[k] = v;
    return h('a', {href: studyUrl(data.name, query), 'aria-current': current() === key ? 'page' : null}, label);
  }));
  const current = () => (TABS.some(([key]) => key === state().get('tab')) ? state().get('tab') : 'front');
  drawHead();
  drawNav();
  fill(main, head, said, briefing.el, tilesEl, nav, selectEl, body);
  await data.update(ctx.signal);
  renew(tilesEl, tiles(data));
  let view = null;
  const selection = new Selection(data, () => { beliefs(); view?.selected?.(); });
  selection.saved = drawNav;
  fill(selectEl, current() !== 'progress' && selection.el);
  selectEl.classList.toggle('stuck', current() === 'all');
  /* of all trials, for those who show it */
  const beliefs = () => (current() === 'trials' || current() === 'all' || selection.by === 'expected' || selection.filters.has('expected')) && data.readExpected(ctx.signal).then((read) => { if (read) selection.change(); }).catch((problem) => { if (!ctx.signal.aborted) console.info(problem); });
  const tab = await TABS.find(([key]) => key === current())[2]();
  if (ctx.signal.aborted) return;
  main.addEventListener('click', () => selection.save(), {capture: true, signal: ctx.signal}); /* before a link leaves: the back button then restores the state */
  view = await tab.show(body, data, {...ctx, selection});
  beliefs();
  const news = () => briefing.update(ctx.signal).catch((problem) => { if (!ctx.signal.aborted) console.info(problem); });
  let timer = 0;
  const lanes = async () => {
    timer = 0;
    const answer = await readLanes(data, ctx.signal);
    now = lanesText(answer);
    drawHead();
    view?.lanes?.(answer);
  };
  const lanesSoon = () => { timer ||= setTimeout(() => lanes().catch(() => {}), LANES_MS); };
  ctx.onLeave(() => clearTimeout(timer));
  news();
  lanes().catch(() => {});
  ctx.onLeave(() => view?.destroy?.());
  async function refresh() {
    data.setStudy(await get(studyPath(data.name), null, ctx.signal));
    const changed = await data.update(ctx.signal);
    drawHead();
    renew(tilesEl, tiles(data));
    news();
    if (changed) { selection.refresh(); await view?.update?.(); beliefs(); }
    lanesSoon();
  }
  follow(ctx, data.name, (event) => event === 'study' || event === 'trial', refresh, (event, what) => {
    if (event === 'model') { news(); view?.model?.(); } else if (event === 'progress') { view?.running?.(what); lanesSoon(); }
  });
}
