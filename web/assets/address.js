/* address.js - where a page is and how others are linked to. All of a view's state is in its address.
 * On a server that is the path and the query; in a site that `trawl report --site` wrote, which needs no server, the same after a '#'. */

/* What the site has (data/site.js), or null: on a server. */
export const site = globalThis.trawlSite ?? null;

/* A URL whose pathname and query are the page's. */
export function here() {
  return new URL(site ? `http://site${location.hash.slice(1) || '/'}` : location.href);
}

export function link(path) {
  return site ? `#${path}` : path;
}

export function asset(name) {
  return site ? `assets/${name}` : `/assets/${name}`;
}

/* To another page, as a click on a link to it. */
export function go(target) {
  history.pushState(null, '', target);
  dispatchEvent(new PopStateEvent('popstate'));
}

export function studyUrl(name, query) {
  const tail = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null && value !== '')).toString();
  return link(`/study/${encodeURIComponent(name).replace(/^\.+$/, (dots) => dots.replaceAll('.', '%2E'))}${tail ? `?${tail}` : ''}`);
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
  return link(tail ? `/compare?${tail}` : '/compare');
}

/* The state of the view: the query of the address. */
export function state() {
  return here().searchParams;
}

/* Changes some of it, without a new page; null takes one out. */
export function setState(changes, push = false) {
  const params = state();
  for (const [key, value] of Object.entries(changes)) value === null || value === '' || value === undefined ? params.delete(key) : params.set(key, value);
  const tail = params.toString();
  const {pathname, search} = here(), target = pathname + (tail ? `?${tail}` : '');
  if (target !== pathname + search) history[push ? 'pushState' : 'replaceState'](null, '', link(target));
}
