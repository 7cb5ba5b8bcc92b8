/* seeds.js - "was it luck?": all runs of one config, their mean, interquartile mean and bands. */
import {get, studyPath} from './api.js';
import {card, command, fill, h, shellWord} from './dom.js';
import {trialUrl} from './address.js';
import {seedsChart} from './charts/seeds.js';
import * as fmt from './format.js';

const band = (at, lo, hi) => (Number.isFinite(lo) ? `${fmt.number(at)}, 95 % ${fmt.interval(lo, hi)}` : fmt.number(at));

/* Of the config of trial n; fills el. study: of the API; act(body): steers, null without --control. */
export async function showSeeds(el, study, store, n, act, signal) {
  const answer = await get(studyPath(study.name, `/trials/${n}/seeds`), null, signal);
  const runs = answer.rows, done = runs.filter(([, state]) => state === 'done').length, waiting = runs.filter(([, state]) => state === 'queued' || state === 'running').length;
  const more = act ? h('button', {type: 'button', onclick: () => act({action: 'confirm', trial: n, trials: study.promise_seeds})}, `Run ${study.promise_seeds} fresh seeds`)
    : command(`trawl rerun ${shellWord(study.name)} --store ${shellWord(store)} --trial ${n} --seeds ${study.promise_seeds}`);
  fill(el, card('Was it luck?', [
    done > 1 ? [seedsChart(answer, study.metric),
      h('dl.params', null, h('dt', null, `mean of ${answer.all.n} runs`), h('dd', null, band(answer.all.mean, answer.all.mean_lo, answer.all.mean_hi)),
        h('dt', null, 'interquartile mean'), h('dd', null, band(answer.all.iqm, answer.all.iqm_lo, answer.all.iqm_hi)),
        h('dt', {title: 'the first run was chosen for its score'}, `without the first run (${answer.fresh.n})`), h('dd', null, band(answer.fresh.mean, answer.fresh.mean_lo, answer.fresh.mean_hi))),
      h('p.small', null, runs.map(([trial, state, seed, score]) => [h('a', {href: trialUrl(study.name, trial), title: `seed ${seed}`}, `#${trial}`), ` ${state === 'done' ? fmt.number(score) : state} `]))]
      : h('p.soft', null, done ? 'This config has been run once: its score may be luck.' : 'This config has no result yet.'),
    waiting > 0 && h('p.soft', null, `${waiting} more ${waiting > 1 ? 'runs are' : 'run is'} queued or running.`), more], {id: 'luck'}));
}
