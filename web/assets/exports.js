/* exports.js - buttons that save a trial's config, in the forms of `trawl export`. */
import {site} from './address.js';
import {studyPath, url} from './api.js';
import {h} from './dom.js';

const SUFFIX = {ini: 'ini', json: 'json', args: 'sh'};

/* query: by which the server picks trial n; null where a site has no texts of it. */
export async function exportButtons(study, n, query, label) {
  const texts = site && await (await import('./site.js')).exportsOf(study, n);
  if (texts && !texts.ini) return null;
  const button = (format) => h('a.button', {href: texts ? `data:text/plain;charset=utf-8,${encodeURIComponent(texts[format])}` : url(studyPath(study, '/export'), {...query, format}),
    download: texts ? `${study}-${n}.${SUFFIX[format]}` : '', title: `the file of trawl export as ${format}`}, format);
  return h('div.export', {role: 'group', 'aria-label': 'download the config'}, h('span', null, label), Object.keys(SUFFIX).map(button));
}
