/* app.js - finds the page of an address; the address holds all of a view's state: every view can be linked to, and the back
 * button works.
 *
 * A page is {title, crumbs, show(el, ctx)}; ctx.signal is aborted when the page is left, ctx.onLeave(f) registers a
 * function that runs then. State that only refines a view replaces the address, going elsewhere adds to the history. */
import {fill, h, empty} from './dom.js';
import {here, link, site} from './address.js';
import {ApiError, get} from './api.js';
import {begin, follow} from './live.js';

const routes = [
  [/^\/$/, () => import('./studies.js')],
  [/^\/study\/([^/]+)$/, () => import('./study/study.js')],
  [/^\/study\/([^/]+)\/trial\/(\d+)$/, () => import('./trial.js')],
  [/^\/compare$/, () => import('./compare.js')],
];

const main = document.getElementById('main'), crumbs = document.getElementById('crumbs');
let leave = null;

function explain(problem) {
  console.info(problem);
  const hint = problem instanceof ApiError ? problem.hint : null;
  return empty(problem instanceof ApiError ? problem.message : `This page met an error: ${problem.message}`,
    hint && h('p.soft', null, hint),
    h('p', null, h('button', {type: 'button', onclick: route}, 'Try again'), ' ', h('a.button', {href: link('/')}, 'All studies')));
}

async function route() {
  leave?.();
  const gone = new AbortController(), ends = [];
  leave = () => { gone.abort(); for (const end of ends) end(); };
  const found = routes.map(([pattern, load]) => [here().pathname.match(pattern), load]).find(([match]) => match);
  if (!found) {
    document.title = 'Not found – Trawl';
    fill(crumbs);
    fill(main, empty('There is no such page.', h('p', null, h('a.button', {href: link('/')}, 'All studies'))));
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
  const to = event.target.closest?.('a[href]');
  if (to?.matches('.skip')) { event.preventDefault(); main.focus(); return; }
  if (!to || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey ||
    to.hasAttribute('download') || to.target || to.origin !== location.origin) return;
  if (site ? !to.hash.startsWith('#/') : to.hash && to.pathname === location.pathname) return;
  if (!site && !routes.some(([pattern]) => pattern.test(to.pathname))) return;
  event.preventDefault();
  if (to.href !== location.href) history.pushState(null, '', to.href);
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
