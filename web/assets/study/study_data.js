/* study_data.js - a study in the browser: its trials as columns, the front, the model's beliefs.
 * Rows have index = number; a row that was not read yet has the state "unknown". */
import {get, studyPath} from '../api.js';
import {h} from '../dom.js';
import {tipRow} from '../charts/hover.js';
import * as fmt from '../format.js';

const EXPECTED = ['number', 'expected', 'expected_lo', 'expected_hi', 'n_seeds'];
const FIELDS = ['number', 'state', 'score', 'cost', 'cost_s', 'env_steps', 'on_front', 'origin', 'device', 'reason', 'seed',
  'started_ms', 'finished_ms', 'live_score', 'live_s', 'dropped', 'note', 'tags', 'env', 'objective', 'infeasible', 'params'];

const TIP_PARAMS = 10; /* lines of a tooltip */

export class StudyData {
  constructor(study) {
    this.n = 0;
    this.column = {};
    for (const field of [...FIELDS.slice(0, -1), ...EXPECTED]) this.column[field] = [];
    this.setStudy(study);
    for (const p of this.params) this.column[p.key] = [];
    this.version = -1;
    this.beliefs = new Map();
    this.answer = null;
  }

  /* What there is to read of trial i: why it ended so, why it is dropped, what people wrote. */
  why(i) {
    const c = this.column;
    return [c.infeasible[i] && `infeasible: ${c.infeasible[i]}`, c.dropped[i] && `dropped: ${c.dropped[i]}`, c.reason[i], c.note[i], c.tags[i]].filter(Boolean).join(' · ');
  }

  /* Runs with branches: trials of one run by cost, its branches and itself. */
  runs() {
    const runs = new Map();
    for (let i = 0; i < this.n; i++) {
      const [, of] = /^branch (\d+)$/.exec(this.column.origin[i] ?? '') ?? [];
      if (of !== undefined) runs.set(of, [...runs.get(of) ?? [Number(of)], i]);
    }
    return [...runs.values()].map((list) => list.sort((a, b) => this.cost[a] - this.cost[b]));
  }

  setStudy(study) {
    this.study = study;
    this.name = study.name;
    this.metric = study.metric;
    this.maximize = study.direction === 'maximize';
    this.costUnit = study.cost_unit;
    this.costIsTime = study.cost_unit === 's';
    this.costTitle = study.cost_unit === 'steps' ? 'cost of a trial in env steps, log scale' : 'cost of a trial, log scale';
    this.params = study.space.params;
    this.objective = study.space.objective ?? null; /* the third one: {metric, goal, scale} */
    this.counts = study.counts;
  }

  get number() { return this.column.number; }
  get state() { return this.column.state; }
  get score() { return this.column.score; }
  get cost() { return this.column.cost; }

  /* Reads the changes since the loaded version; true when there are any. */
  async update(signal) {
    if (this.study.trials < this.n) { /* another store is at the path now */
      for (const column of Object.values(this.column)) column.length = 0;
      this.n = 0;
      this.version = -1;
    }
    const query = {limit: 20000, fields: FIELDS.join(',')};
    if (this.version >= 0) query.since = this.version;
    let changed = false, offset = 0, answer;
    do {
      answer = await get(studyPath(this.name, '/trials'), {...query, offset: offset || undefined}, signal);
      for (const row of answer.rows) this.take(answer.columns, row);
      changed ||= answer.rows.length > 0;
      offset = answer.next_offset;
    } while (offset);
    this.version = answer.version;
    const front = await get(studyPath(this.name, '/front'), null, signal), seen = JSON.stringify([front.points, front.best_trial, front.knee_trial]);
    changed ||= seen !== this.seen;
    this.seen = seen;
    this.answer = front;
    if (changed || !this.plotted) this.judge();
    return changed;
  }

  /* What is believed of every trial, for those who show it; a new model changes all of them. True: it was read now. */
  async readExpected(signal) {
    if (this.answer.model === 'none' || this.expectedOf === this.seen) return false;
    const seen = this.seen;
    let offset = 0;
    do {
      const answer = await get(studyPath(this.name, '/trials'), {limit: 20000, fields: EXPECTED.join(','), offset: offset || undefined}, signal);
      for (const row of answer.rows) this.take(answer.columns, row);
      offset = answer.next_offset;
    } while (offset);
    this.expectedOf = seen;
    return true;
  }

  take(columns, row) {
    const i = row[columns.indexOf('number')];
    for (; this.n <= i; this.n++) for (const key of Object.keys(this.column)) this.column[key][this.n] = key === 'number' ? this.n : key === 'state' ? 'unknown' : null;
    columns.forEach((key, k) => { if (this.column[key]) this.column[key][i] = row[k]; });
  }

  /* Plotted: done, with a score and a cost that a log axis can show. Front, picks and their promises are the server's. */
  judge() {
    const {state, score, cost} = this;
    this.isPlotted = new Uint8Array(this.n);
    this.onFront = new Uint8Array(this.n);
    this.plotted = [];
    for (let i = 0; i < this.n; i++)
      if (state[i] === 'done' && Number.isFinite(score[i]) && Number.isFinite(cost[i]) && score[i] !== null && cost[i] > 0) {
        this.isPlotted[i] = 1;
        this.plotted.push(i);
      }
    const known = (i) => (Number.isInteger(i) && i < this.n && this.isPlotted[i] ? i : -1);
    this.beliefs = new Map();
    for (const p of this.answer.points)
      this.beliefs.set(p.trial, {known: p.score_mean !== null, score: p.score_mean ?? p.score, lo: p.score_lo, hi: p.score_hi, cost: p.cost_mean ?? p.cost,
        seeds: p.n_seeds, mean: p.seeds_mean, start: p.start_s, objective: p.objective});
    this.front = this.answer.points.map((p) => p.trial).filter((i) => known(i) >= 0);
    for (const i of this.front) this.onFront[i] = 1;
    this.best = known(this.answer.best_trial);
    this.bestRun = known(this.study.best_run_trial);
    this.knee = known(this.answer.knee_trial);
    this.counts = {queued: 0, running: 0, done: 0, stopped: 0, failed: 0, lost: 0};
    for (let i = 0; i < this.n; i++) if (state[i] in this.counts) this.counts[state[i]]++;
    this.spent = this.column.cost_s.reduce((sum, s) => sum + (Number.isFinite(s) ? s : 0), 0);
  }

  /* The place of trial i: a member of the front at its expected values, any other trial at its run's. */
  place(i) {
    const b = this.onFront[i] ? this.beliefs.get(i) : null;
    return b ? b : {cost: this.cost[i], score: this.score[i]};
  }

  /* The promise of a member of the front, in words. */
  promise(i) {
    const b = this.beliefs.get(i);
    return b ? `${b.known ? `95 % ${fmt.interval(b.lo, b.hi)}, ` : ''}${fmt.seeds(b.seeds, b.mean)}` : '';
  }

  /* Both costs, where the start time of a fresh process is known. */
  promisedCost(i) {
    const b = this.beliefs.get(i);
    if (!b) return this.costText(i);
    const warm = fmt.cost(b.cost, this.costUnit), cold = this.costIsTime && b.start > 0 ? fmt.duration(b.cost + b.start) : warm;
    return cold === warm ? warm : `${warm} in a warm worker, ${cold} from process start`;
  }

  /* The cost of a trial that ended early: what it took, where it has none of its own. */
  took(i) {
    const c = this.column;
    if (c.cost[i] > 0) return c.cost[i];
    return this.costIsTime ? (c.finished_ms[i] - c.started_ms[i]) / 1000 : c.env_steps[i];
  }

  costText(i) { return fmt.cost(this.cost[i], this.costUnit); }

  /* Has the parameter an effect in trial i? */
  isActive(key, i) {
    const {when} = this.params.find((p) => p.key === key);
    if (!when) return true;
    const value = this.column[when.key][i];
    return this.isActive(when.key, i) && (when.choices ? when.choices.includes(String(value)) : value >= (when.min ?? -Infinity) && value <= (when.max ?? Infinity));
  }

  paramText(key, i) {
    const value = this.column[key][i];
    return value === null || value === undefined || !this.isActive(key, i) ? '–' : typeof value === 'number' ? fmt.number(value) : String(value);
  }

  /* Infeasible trials that have a place. */
  get infeasible() { return this.plotted.filter((i) => this.column.infeasible[i]); }

  /* The same study with the third objective in the score's place, for a chart: no interval is known of it. */
  byObjective() {
    const data = this, {metric, goal} = this.objective;
    const beliefs = new Map([...this.beliefs].map(([i, b]) => [i, {...b, known: false, score: b.objective, lo: null, hi: null}]));
    return Object.create(this, {
      metric: {value: metric}, maximize: {value: goal === 'maximize'}, beliefs: {value: beliefs}, score: {get: () => data.column.objective},
      plotted: {value: this.plotted.filter((i) => Number.isFinite(data.column.objective[i]))}});
  }

  /* A tooltip. */
  describe(i) {
    const belief = this.onFront[i] ? this.beliefs.get(i) : null, c = this.column;
    const tag = [i === this.best && 'best', i === this.knee && 'knee', this.onFront[i] && 'on the front'].filter(Boolean).join(', ');
    return [
      h('div.tip-head', null, `Trial ${this.number[i]}`, h('small', null, ` ${tag || this.state[i]}`)),
      belief?.known && tipRow('expected', fmt.number(belief.score)),
      belief?.known && tipRow('95 %', fmt.interval(belief.lo, belief.hi)),
      belief && tipRow('runs', fmt.seeds(belief.seeds, belief.mean)),
      c.score[i] !== null && tipRow(belief ? `${this.metric} of its run` : this.metric, fmt.number(c.score[i])),
      c.cost[i] !== null && tipRow('cost', this.costText(i)),
      this.objective && c.objective[i] !== null && tipRow(this.objective.metric, fmt.number(belief?.objective ?? c.objective[i])),
      c.env_steps[i] > 0 && tipRow('env steps', fmt.compact(c.env_steps[i])),
      this.params.slice(0, TIP_PARAMS).map((p) => tipRow(p.key.split('.').at(-1), this.paramText(p.key, i))),
      this.params.length > TIP_PARAMS && h('div', null, h('span', null, `and ${this.params.length - TIP_PARAMS} more parameters`)),
      this.why(i) && h('div.tip-why', null, this.why(i).slice(0, 140)),
    ];
  }
}

/* -- filters: ranges and words, written into the address as f=key:lo:hi and q=words -- */

export function parseFilters(params) {
  const filters = new Map();
  for (const part of params.getAll('f').flatMap((text) => text.split(';')).filter(Boolean)) {
    const at = part.match(/^(.*):([^:]*):([^:]*)$/);
    if (!at) continue;
    filters.set(at[1], [at[2] === '' ? -Infinity : Number(at[2]), at[3] === '' ? Infinity : Number(at[3])]);
  }
  return filters;
}

export function filtersText(filters) {
  const side = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(8))) : '');
  return [...filters].map(([key, [lo, hi]]) => `${key}:${side(lo)}:${side(hi)}`).join(';');
}

/* The value that a filter or an axis uses: categories count as their place among the choices. */
export function axisValue(data, key, i) {
  const value = data.column[key]?.[i];
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  const param = data.params.find((p) => p.key === key);
  return param?.choices && value !== null ? param.choices.findIndex((choice) => String(choice) === String(value)) : NaN;
}

/* null when everything passes. */
export function makeMask(data, filters, words, states) {
  const terms = (words || '').toLowerCase().split(/\s+/).filter(Boolean);
  if (!filters.size && !terms.length && !states) return null;
  const mask = new Uint8Array(data.n).fill(1);
  for (const [key, [lo, hi]] of filters)
    for (let i = 0; i < data.n; i++) {
      const value = axisValue(data, key, i);
      if (!(value >= lo && value <= hi)) mask[i] = 0;
    }
  if (states) for (let i = 0; i < data.n; i++) if (!states.has(data.state[i])) mask[i] = 0;
  if (terms.length)
    for (let i = 0; i < data.n; i++) {
      if (!mask[i]) continue;
      const c = data.column, text = `#${i} ${c.state[i]} ${c.origin[i] ?? ''} ${c.device[i] ?? ''} ${data.why(i)} ${data.params.map((p) => (typeof c[p.key][i] === 'string' ? c[p.key][i] : '')).join(' ')}`.toLowerCase();
      if (!terms.every((term) => (/^#?\d+$/.test(term) ? `#${i}` === `#${term.replace('#', '')}` : text.includes(term)))) mask[i] = 0;
    }
  return mask;
}
