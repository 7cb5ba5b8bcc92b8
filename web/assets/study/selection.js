/* selection.js - the trials that are chosen, and what their colour stands for: one of both for all views of a study, in the address
 * (f: ranges, q: words, state, colour). Views change it; study.js notifies them. */
import {compareUrl, setState, state, studyUrl} from '../address.js';
import {fill, h, renew} from '../dom.js';
import {filtersText, makeMask, parseFilters} from './study_data.js';
import {colourBy, colourKeys} from '../charts/colour.js';
import * as fmt from '../format.js';

const COMPARE_MAX = 12;

function rangeText(data, key, [lo, hi]) {
  const param = data.params.find((p) => p.key === key);
  const show = (v) => (key === 'cost' ? fmt.cost(v, data.costUnit) : fmt.number(v));
  if (param?.choices) return param.choices.filter((_, i) => i >= lo && i <= hi).join(', ') || 'none';
  return lo === -Infinity ? `up to ${show(hi)}` : hi === Infinity ? `from ${show(lo)}` : `${show(lo)} to ${show(hi)}`;
}

export class Selection {
  /* changed(): after every change */
  constructor(data, changed) {
    const params = state();
    Object.assign(this, {data, changed, filters: parseFilters(params), words: params.get('q') || '', states: params.get('state') ? new Set(params.get('state').split(',')) : null,
      by: params.get('colour') || '', held: false});
    this.el = h('div.selection-bar', {role: 'group', 'aria-label': 'selection'});
    this.chips = h('div.filters');
    this.count = h('span.soft', {role: 'status'});
    this.legend = h('span.colour-legend');
    this.select = h('select', {'aria-label': 'what the colour of a trial means', onchange: () => { this.by = this.select.value; this.change(); }},
      h('option', {value: ''}, 'nothing'), colourKeys(data).map(([key, label]) => h('option', {value: key}, label)));
    this.select.value = this.by;
    if (this.select.selectedIndex < 0) this.select.value = this.by = '';
    fill(this.el, this.chips, h('div.colour-by', null, h('label.soft.small', null, 'colour by ', this.select), this.legend));
    this.refresh();
  }

  /* The data are others: mask and colours again. */
  refresh() {
    this.mask = makeMask(this.data, this.filters, this.words, this.states);
    this.colour = this.by ? colourBy(this.data, this.by) : null;
    this.draw();
  }

  /* Filters, words, states or colour have changed; later: the address follows when the last of many changes has come. */
  change(later = false) {
    this.refresh();
    clearTimeout(this.timer);
    this.held = true;
    if (later) this.timer = setTimeout(() => this.save(), 200);
    else this.save();
    this.changed();
  }

  /* The address has it now; before a link is followed too. */
  save() {
    if (!this.held) return;
    clearTimeout(this.timer);
    this.held = false;
    setState({f: filtersText(this.filters) || null, q: this.words || null, state: this.states ? [...this.states].join(',') : null, colour: this.by || null});
    this.saved?.();
  }

  clear() {
    this.filters = new Map();
    this.states = null;
    this.words = '';
    this.change();
  }

  get n() { return this.mask ? this.mask.reduce((sum, v) => sum + v, 0) : this.data.n; }

  /* The chosen trials, at most max of them. */
  list(max = Infinity) {
    const found = [];
    for (let i = 0; i < this.data.n && found.length < max; i++) if ((!this.mask || this.mask[i]) && this.data.state[i] !== 'unknown') found.push(i);
    return found;
  }

  draw() {
    const {data, mask} = this, n = this.n, chip = (key, text, remove) => h('span.filter-chip', {'data-key': key}, text, h('button', {type: 'button', title: `take the filter on ${key} out`, 'aria-label': `take the filter on ${key} out`, onclick: () => { remove(); this.change(); }}, '×'));
    this.count.textContent = mask ? `${fmt.integer(n)} of ${fmt.integer(data.n)} trials` : `${fmt.integer(data.n)} ${data.n === 1 ? 'trial' : 'trials'}`;
    renew(this.chips, this.count,
      [...this.filters].map(([key, range]) => chip(key, `${key === 'score' ? data.metric : key}: ${rangeText(data, key, range)}`, () => this.filters.delete(key))),
      this.states && chip('state', `state: ${[...this.states].join(', ')}`, () => { this.states = null; }),
      this.words && chip('words', `“${this.words}”`, () => { this.words = ''; }),
      mask && h('button.small', {type: 'button', 'data-key': 'clear', onclick: () => this.clear()}, 'Clear'),
      mask && n >= 2 && n <= COMPARE_MAX && h('a.button.small', {'data-key': 'compare', href: compareUrl(this.list(COMPARE_MAX).map((i) => `${data.name}/${i}`))}, 'Compare these'),
      mask && state().get('tab') !== 'trials' && h('a.button.small', {'data-key': 'table', href: studyUrl(data.name, {...Object.fromEntries(state()), tab: 'trials', f: filtersText(this.filters)})}, 'Show in the table'));
    renew(this.legend, this.colour?.legend());
  }
}
