/* study_all.js - front, parallel coordinates with the table, curves and the model's views on one page: what is selected in one stands
 * in all of them at once. Each is the view of its own tab, and comes when it is ready. */
import {fill, h} from '../dom.js';

const VIEWS = [() => import('./study_front.js'), () => import('./study_trials.js'), () => import('./study_curves.js'), () => import('./study_params.js')];

export async function show(el, data, ctx) {
  const views = new Map();
  fill(el, VIEWS.map((load) => {
    const box = h('div.one-of-all');
    begin(load, box).catch((problem) => { if (!ctx.signal.aborted) fill(box, h('p.warn', null, problem.message)); });
    return box;
  }));

  async function begin(load, box) {
    const {mask, colour} = ctx.selection, {show: showView} = await load(), view = await showView(box, data, ctx);
    if (ctx.signal.aborted) { view?.destroy?.(); return; }
    views.set(box, view);
    if (ctx.selection.mask !== mask || ctx.selection.colour !== colour) view?.selected?.(); /* it has changed meanwhile */
  }
  const all = (verb) => (...args) => Promise.all([...views.values()].map((view) => view?.[verb]?.(...args)));
  return Object.fromEntries(['update', 'model', 'selected', 'running', 'lanes', 'destroy'].map((verb) => [verb, all(verb)]));
}
