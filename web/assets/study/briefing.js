/* briefing.js - the card at the top of a study: gained since the last visit, what to take, why it ended, what failed and where,
 * whether to continue. Sentences are the server's, as `trawl show` prints them. */
import {get, studyPath} from '../api.js';
import {command, download, h, renew} from '../dom.js';
import {trialUrl} from '../address.js';
import * as fmt from '../format.js';

const VISIT_MS = 30 * 60 * 1000; /* without the page for this long: the next look is another visit */

/* When this browser saw the study in an earlier visit; null: never. Called again while the page is open. */
function lastVisit(data) {
  const key = `visit ${data.store} ${data.name}`;
  try {
    const was = JSON.parse(localStorage.getItem(key) || 'null') ?? {};
    const now = Date.now(), before = was.seen_ms && now - was.seen_ms > VISIT_MS ? was.seen_ms : was.before_ms;
    localStorage.setItem(key, JSON.stringify({seen_ms: now, before_ms: before}));
    return before ?? null;
  } catch {
    return null; /* no storage: every visit is the first */
  }
}

function part(title, kind, ...children) {
  return h(`div.part.${kind}`, null, h('h2', null, title), ...children);
}

function why(data) {
  const s = data.study, running = s.state === 'running' || s.state === 'waiting';
  if (running) return null;
  return s.end_text || {idle: 'No controller runs it.', interrupted: 'Its controller is gone; trials that it ran are cut off.', paused: 'It is paused.'}[s.state] || null;
}

/* steer: the buttons' owner (controls.js), null without --control. */
export class Briefing {
  constructor(data, steer) {
    Object.assign(this, {data, steer, since: lastVisit(data), el: h('section.card.briefing', {'aria-label': 'briefing', hidden: true})});
    this.timer = setInterval(() => lastVisit(data), 60000);
  }

  destroy() { clearInterval(this.timer); }

  async update(signal) {
    if (!this.data.n) return;
    this.show(await get(studyPath(this.data.name, '/briefing'), {since_ms: this.since}, signal));
  }

  take(b) {
    const data = this.data, t = b.take;
    if (t.trial === null) return h('p.soft', null, 'No trial is done yet.');
    const luck = this.steer && h('button.small', {type: 'button', 'data-key': t.trial, title: `queues the config of trial ${t.trial} under ${data.study.promise_seeds} fresh seeds`,
      onclick: () => this.steer.act({action: 'confirm', trial: t.trial, trials: data.study.promise_seeds})}, `Was it luck? Run ${data.study.promise_seeds} fresh seeds`);
    const [head, ...rest] = t.text.split(`trial ${t.trial}`);
    return [h('p', null, head, h('a', {href: trialUrl(data.name, t.trial)}, `trial ${t.trial}`), rest.join(`trial ${t.trial}`)), command(t.command),
      luck || (t.n_seeds < 2 && [h('p.soft.small', null, 'Seen once. To run it under fresh seeds:'), command(t.confirm_command)])];
  }

  failed(b) {
    const f = b.failures, data = this.data;
    if (!f.trials) return null;
    const most = f.reasons[0];
    return part('What failed', 'failed', h('p', null, `${f.trials} of ${data.n} trials. `, most && [`${most.trials}: ${most.reason.slice(0, 160)} (`, h('a', {href: trialUrl(data.name, most.first)}, `trial ${most.first}`), ')']),
      f.rules.map((rule) => h('p.rule', null, rule)),
      f.ini && h('div.command', null, h('pre', null, f.ini), h('button.small', {type: 'button', 'data-key': f.ini, title: 'config lines that keep the next study away from these values: trawl sweep yours.ini avoid.ini', onclick: () => download('avoid.ini', f.ini)}, 'avoid.ini')));
  }

  show(b) {
    const ended = why(this.data), running = this.data.counts.running > 0;
    renew(this.el, h('div.parts', null,
      b.gained.text && part('Since your last visit', 'gained', h('p', {title: `${fmt.ago(this.since)}`}, b.gained.text)),
      part('Recommended', 'take', this.take(b)),
      this.failed(b),
      part(running ? 'Continue?' : 'Why it ended, and what next', 'next', ended && h('p', null, fmt.sentence(ended)),
        h('p', null, b.next.text), !running && b.next.command && command(b.next.command))));
    this.el.hidden = false;
  }
}
