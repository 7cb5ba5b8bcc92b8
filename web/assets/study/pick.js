/* pick.js - pick from the front by highest cost or lowest score, by the rules of `trawl export`.
 * While the slider moves, the choice is made here from the loaded front; the server's answer follows. */
import {get, studyPath} from '../api.js';
import {command, fill, h, renew, segments, shellWord} from '../dom.js';
import {setState, site, state, trialUrl} from '../address.js';
import {exportButtons} from '../exports.js';
import * as fmt from '../format.js';

const MODES = [['budget', 'Budget', 'the best score that costs no more'], ['score', 'Score', 'the cheapest that is at least as good'],
  ['best', 'Best', 'what the model recommends, whatever it costs: expected to be good, not lucky once'],
  ['best-run', 'Best run', 'the best score of a single run'], ['knee', 'Knee', 'beyond it more cost buys little']];

export class Pick {
  constructor(el, data, ctx, onChoice) {
    Object.assign(this, {el, data, ctx, onChoice, choice: null, timer: 0, asked: 0});
    const [mode, value] = (state().get('pick') || 'knee').split(':');
    this.mode = MODES.some(([key]) => key === mode) ? mode : 'knee';
    this.value = value === undefined || value === '' ? null : Number(value);
    this.build();
  }

  build() {
    this.slider = h('input', {type: 'range', min: 0, max: 1000, step: 1, id: 'pick-slider', oninput: () => this.slid()});
    this.output = h('output', {for: 'pick-slider'});
    this.label = h('label', {for: 'pick-slider'});
    this.result = h('div.pick-result', {'aria-live': 'polite'});
    this.modes = segments('how to pick', MODES, this.mode, (key) => { this.mode = key; this.value = null; this.update(); this.remember(); });
    this.sliderRow = h('div.slider', null, this.label, this.output, this.slider);
    fill(this.el, this.modes, this.sliderRow, this.result);
  }

  range() {
    const d = this.data, front = d.front;
    if (this.mode === 'budget') return [d.place(front[0]).cost, d.place(front.at(-1)).cost];
    const scores = front.map((i) => this.sure(i));
    return [Math.min(...scores), Math.max(...scores)];
  }

  /* The score that a member of the front reaches for sure: the worse end of its interval. */
  sure(i) {
    const b = this.data.beliefs.get(i);
    return b.known ? (this.data.maximize ? b.lo : b.hi) : b.score;
  }

  toSlider(value, [lo, hi]) {
    if (!(hi > lo)) return 1000;
    return 1000 * (this.mode === 'budget' ? Math.log(value / lo) / Math.log(hi / lo) : (value - lo) / (hi - lo));
  }

  fromSlider(at, [lo, hi]) {
    if (at >= 1000 && this.mode === 'budget') return roundUp(hi);
    if ((this.data.maximize && at >= 1000) || (!this.data.maximize && at <= 0)) return this.wanted(this.data.maximize ? hi : lo);
    return Number((this.mode === 'budget' ? lo * (hi / lo) ** (at / 1000) : lo + (hi - lo) * (at / 1000)).toPrecision(4));
  }

  /* A round score that this score reaches. */
  wanted(score) {
    return this.data.maximize ? roundDown(score) : roundUp(score);
  }

  slid() {
    this.value = this.fromSlider(Number(this.slider.value), this.range());
    this.choose();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.remember(); this.ask(); }, 150);
  }

  remember() {
    setState({pick: this.mode === 'knee' && this.value === null ? null : this.value === null ? this.mode : `${this.mode}:${this.value}`});
  }

  update() {
    const d = this.data;
    if (!d.front.length) {
      fill(this.result, h('p.soft', null, 'Nothing to pick from: no trial is done yet.'));
      this.sliderRow.hidden = true;
      return;
    }
    const slides = this.mode === 'budget' || this.mode === 'score';
    this.sliderRow.hidden = !slides;
    if (slides) {
      const range = this.range(), start = d.front.includes(d.knee) ? d.knee : d.front.includes(d.best) ? d.best : d.front.at(-1);
      if (this.value === null) this.value = this.mode === 'budget' ? roundUp(d.place(start).cost) : this.wanted(this.sure(start));
      this.slider.value = this.toSlider(this.value, range);
      fill(this.label, this.mode === 'budget' ? 'A trial may cost' : `At least this ${d.metric}`);
    }
    this.choose();
    this.ask();
  }

  /* While the slider moves: the fitting member of the front; the server, which has all trials, may answer with another. */
  choose() {
    const d = this.data, sign = d.maximize ? 1 : -1;
    const index = this.mode === 'best-run' ? d.bestRun : this.mode === 'best' ? d.best : this.mode === 'knee' ? (d.knee >= 0 ? d.knee : d.best)
      : this.mode === 'budget' ? d.front.findLast((i) => d.place(i).cost <= this.value) ?? -1
        : d.front.find((i) => sign * this.sure(i) >= sign * this.value) ?? -1;
    this.choice = {index, budget: this.mode === 'budget' ? this.value : undefined, score: this.mode === 'score' ? this.value : undefined};
    if (this.mode === 'budget') this.output.value = d.costIsTime ? `${fmt.duration(this.value)}` : fmt.cost(this.value, d.costUnit);
    else this.output.value = fmt.number(this.value);
    this.slider.setAttribute('aria-valuetext', this.output.value);
    this.onChoice(this.choice);
  }

  query() {
    if (this.mode === 'budget') return this.data.costIsTime ? {budget_s: this.value} : {rule: `cost<=${this.value}`};
    if (this.mode === 'score') return {score: this.value};
    return {rule: this.mode};
  }

  async ask() {
    const what = JSON.stringify([this.query(), this.data.answer]);
    if (what === this.answered) return;
    const turn = ++this.asked, own = this.choice.index; /* a site holds the front's members, not every budget */
    const query = site && own >= 0 && (this.mode === 'budget' || this.mode === 'score') ? {rule: `trial=${own}`} : this.query();
    let answer, save;
    try {
      answer = await get(studyPath(this.data.name, '/pick'), query, this.ctx.signal);
      save = await exportButtons(this.data.name, answer.trial, query, 'Export');
    } catch (problem) {
      if (turn === this.asked && !this.ctx.signal.aborted) fill(this.result, h('p.warn', null, problem.message), problem.hint && h('p.soft', null, problem.hint));
      return;
    }
    if (turn !== this.asked) return;
    this.answered = what;
    this.show(answer, save);
  }

  show(a, save) {
    const d = this.data;
    if (a.trial !== this.choice.index) { /* the server has more: the model, newer rows */
      this.choice = {...this.choice, index: a.trial};
      this.onChoice(this.choice);
    }
    const known = a.score_mean !== null && a.score_mean !== undefined;
    renew(this.result,
      h('div.pick-head', null, h('a', {href: trialUrl(d.name, a.trial)}, `Trial ${a.trial}`), h('span.soft', null, ` cost ${a.cost_text}`)),
      a.note && h('p.warn', null, fmt.sentence(a.note)),
      h('div.pick-score', null,
        h('div', null, h('b', null, known ? fmt.number(a.score_mean) : fmt.number(a.score)), h('span', null, known ? `expected ${d.metric}` : `${d.metric} of its one run`)),
        known && h('div', null, h('b.range', null, fmt.interval(a.score_lo, a.score_hi)), h('span', null, `95 % interval of the mean of ${d.study.promise_seeds} fresh seeds`)),
        h('div', null, h('b.range', null, a.n_seeds > 1 ? `${a.n_seeds} seeds` : 'seen once'), h('span', null, a.n_seeds > 1 ? `mean ${fmt.number(a.seeds_mean)}` : `${fmt.number(a.score)} in its run`))),
      a.score_noise_sd > 0 && h('p.soft.small', null, `A single new run varies by another ± ${fmt.number(Number((1.96 * a.score_noise_sd).toPrecision(2)))} (95 %).`),
      a.n_seeds < 2 && [h('p.soft.small', null, 'Unconfirmed; to run it under fresh seeds:'),
        command(`trawl rerun ${shellWord(d.name)} --store ${shellWord(d.store)} --trial ${a.trial} --seeds ${d.study.promise_seeds}`)],
      save,
      a.train_command && command(a.train_command, 'Copy train line'),
      h('dl.params', null, Object.entries(a.params).map(([key, value]) => [h('dt', null, key), h('dd', null, typeof value === 'number' ? fmt.number(value) : String(value))])));
  }

  destroy() {
    clearTimeout(this.timer);
  }
}

/* To four digits and never to the other side. */
function roundUp(v) {
  const r = Number(v.toPrecision(4));
  return r >= v ? r : Number((v + Math.abs(v) * 1e-3).toPrecision(4));
}

function roundDown(v) {
  const r = Number(v.toPrecision(4));
  return r <= v ? r : Number((v - Math.abs(v) * 1e-3).toPrecision(4));
}
