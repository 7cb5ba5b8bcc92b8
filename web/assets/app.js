/* app.js - finds the page of an address; the address holds all of a view's state: every view can be linked to, and the back
 * button works.
 *
 * A page is {title, crumbs, show(el, ctx)}; ctx.signal is aborted when the page is left, ctx.onLeave(f) registers a
 * function that runs then. State that only refines a view replaces the address, going elsewhere adds to the history. */
import {fill, h, empty} from './dom.js';
import {ApiError, get} from './api.js';
import {begin, follow} from './live.js';

const routes = [
  [/^\/$/, () => import('./studies.js')],
  [/^\/study\/([^/]+)$/, () => import('./study.js')],
  [/^\/study\/([^/]+)\/trial\/(\d+)$/, () => import('./trial.js')],
  [/^\/compare$/, () => import('./compare.js')],
];

const main = document.getElementById('main'), crumbs = document.getElementById('crumbs');
let leave = null;

export function studyUrl(name, query) {
  const tail = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null && value !== '')).toString();
  return `/study/${encodeURIComponent(name).replace(/^\.+$/, (dots) => dots.replaceAll('.', '%2E'))}${tail ? `?${tail}` : ''}`;
}

export function trialUrl(name, number, query) {
  const at = studyUrl(name, query).split('?');
  return `${at[0]}/trial/${number}${at[1] ? `?${at[1]}` : ''}`;
}

/* Lists in the address: items are encoded separately: a name may hold a comma. */
export function listText(items) {
  return items.map(encodeURIComponent).join(',');
}

export function parseList(text) {
  return (text || '').split(',').filter(Boolean).map((item) => {
    try {
      return decodeURIComponent(item);
    } catch {
      return item;
    }
  });
}

/* trials: ["STUDY/NUMBER"], studies: [name] */
export function compareUrl(trials, studies = []) {
  const tail = new URLSearchParams([['trials', listText(trials)], ['studies', listText(studies)]].filter(([, text]) => text)).toString();
  return tail ? `/compare?${tail}` : '/compare';
}

/* The state of the view: the query of the address. */
export function state() {
  return new URLSearchParams(location.search);
}

/* Changes some of it, without a new page; null takes one out. */
export function setState(changes, push = false) {
  const params = state();
  for (const [key, value] of Object.entries(changes)) value === null || value === '' || value === undefined ? params.delete(key) : params.set(key, value);
  const tail = params.toString();
  const target = location.pathname + (tail ? `?${tail}` : '');
  if (target !== location.pathname + location.search) history[push ? 'pushState' : 'replaceState'](null, '', target);
}

export function go(target) {
  history.pushState(null, '', target);
  route();
}

export function explain(problem) {
  console.info(problem);
  const hint = problem instanceof ApiError ? problem.hint : null;
  return empty(problem instanceof ApiError ? problem.message : `This page met an error: ${problem.message}`,
    hint && h('p.soft', null, hint),
    h('p', null, h('button', {type: 'button', onclick: route}, 'Try again'), ' ', h('a.button', {href: '/'}, 'All studies')));
}

async function route() {
  leave?.();
  const gone = new AbortController(), ends = [];
  leave = () => { gone.abort(); for (const end of ends) end(); };
  const found = routes.map(([pattern, load]) => [location.pathname.match(pattern), load]).find(([match]) => match);
  if (!found) {
    document.title = 'Not found – Trawl';
    fill(crumbs);
    fill(main, empty('There is no such page.', h('p', null, h('a.button', {href: '/'}, 'All studies'))));
    return;
  }
  const [, name, number] = found[0];
  const ctx = {name: name && decodeURIComponent(name), number: number && Number(number), signal: gone.signal, onLeave: (end) => ends.push(end)};
  try {
    const page = await found[1]();
    ctx.version = await get('/api/v1/version', null, gone.signal); /* before all else: what is newer, the stream reports */
    if (gone.signal.aborted) return;
    begin(ctx.version);
    const [title, ...path] = page.where(ctx);
    document.title = title ? `${title} – Trawl` : 'Trawl';
    fill(crumbs, path.map(([label, href]) => [h('span', {'aria-hidden': 'true'}, '/'), href ? h('a', {href}, label) : h('span', {'aria-current': 'page'}, label)]));
    await page.show(main, ctx);
  } catch (problem) {
    if (gone.signal.aborted || problem.name === 'AbortError') return;
    fill(main, explain(problem));
    follow(ctx, ctx.name ?? null, (event) => event === 'studies' || event === 'study', async () => route());
  }
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey ||
    link.hasAttribute('download') || link.target || link.origin !== location.origin) return;
  if (!routes.some(([pattern]) => pattern.test(link.pathname))) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  if (link.href !== location.href) history.pushState(null, '', link.href);
  route();
  window.scrollTo(0, 0);
  main.focus({preventScroll: true});
});
window.addEventListener('popstate', route);
/* Browsers keep a page that was left for their Back button, with its open streams: six to a server, and the next one waits. */
window.addEventListener('pagehide', () => { leave?.(); leave = null; });
window.addEventListener('pageshow', (event) => { if (event.persisted) route(); });
/* Charts keep the colours of their drawing: they are drawn again. */
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', route);
route();
