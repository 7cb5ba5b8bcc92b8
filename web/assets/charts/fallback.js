/* fallback.js - charts that the server draws, for a trawl built without Vega. */
import {studyPath, url} from '../api.js';
import {fill, h} from '../dom.js';

export async function serverChart(el, name, alt) {
  fill(el, h('img.server-chart', {alt, src: url(studyPath(name, '/report'), {format: 'svg'})}),
    h('p.soft.small', null, 'Drawn by the server: this trawl was built without Vega (Debian: libjs-vega), so charts do not follow the pointer.'));
}

/* For views that only Vega draws: the server's report has the same in still pictures. */
export function serverReport(name) {
  return h('div.empty', null, h('p', null, 'This trawl was built without Vega, which draws this view.'),
    h('p', null, h('a.button', {href: url(studyPath(name, '/report'), {format: 'html'})}, 'Open the report'), ' has the charts as still pictures.'));
}
