/* hover.js - values under the pointer: a tooltip, and for curves a line at the place that it speaks of. */
import {fill, h, pointerAt} from '../dom.js';

const GAP = 14;

export function tipRow(label, value) {
  return h('div', null, h('span', null, label), h('b', null, value));
}

/* Puts the tooltip beside x, y of its parent, inside of it where it fits. */
export function placeTip(tip, x, y) {
  const {clientWidth, clientHeight} = tip.parentElement, right = x > clientWidth / 2;
  tip.style.left = right ? '' : `${x + GAP}px`;
  tip.style.right = right ? `${clientWidth - x + GAP}px` : '';
  tip.style.top = `${Math.max(2, Math.min(y - 20, clientHeight - tip.offsetHeight - 2))}px`;
}

/* The pointer over a Vega view in el: what(x), x of the view's scale "x", gives {x, parts}, the nearest place with a value and what
 * the tooltip shows, or null. */
export function followX(el, view, what) {
  const tip = h('div.tip', {hidden: true}), line = h('div.hover-line', {hidden: true});
  el.append(line, tip);
  const hide = () => { tip.hidden = line.hidden = true; };
  const show = (event) => {
    const [px0, py] = pointerAt(event, el), pad = view.padding(), [ox, oy] = view.origin(), left = pad.left + ox, top = pad.top + oy, scale = view.scale('x');
    const px = px0 - left, found = px < -6 || px > view.width() + 6 ? null : what(scale.invert(px));
    if (!found) return hide();
    const at = left + scale(found.x);
    line.hidden = tip.hidden = false;
    Object.assign(line.style, {left: `${at}px`, top: `${top}px`, height: `${view.height()}px`});
    fill(tip, found.parts);
    placeTip(tip, at, py);
  };
  el.addEventListener('pointermove', show);
  el.addEventListener('pointerdown', show);
  el.addEventListener('pointerleave', hide);
}

/* The handler of tooltips of a Vega view in el, for items with a tooltip in their encoding: parts(value) is shown. */
export function itemTip(el, parts) {
  const tip = h('div.tip', {hidden: true});
  return (handler, event, item, value) => {
    if (tip.parentElement !== el) el.append(tip);
    tip.hidden = value === null || value === undefined || value === '';
    if (tip.hidden) return;
    fill(tip, parts(value));
    placeTip(tip, ...pointerAt(event, el));
  };
}

/* The place in the sorted list xs that is nearest to x; -1: the list is empty. */
export function nearest(xs, x) {
  let lo = 0, hi = xs.length - 1;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (xs[mid] <= x) lo = mid;
    else hi = mid;
  }
  return hi < 0 ? -1 : Math.abs(xs[hi] - x) < Math.abs(xs[lo] - x) ? hi : lo;
}
