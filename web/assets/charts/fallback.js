/* fallback.js - charts that the server draws, for a trawl built without Vega: the front as a picture, and the figures of its
 * report, each in a shadow root with the report's own style. */
import {studyPath, text, url} from '../api.js';
import {fill, h} from '../dom.js';

const WHY = 'Drawn by the server: this trawl was built without Vega (Debian: libjs-vega), so charts do not follow the pointer.';

export async function serverChart(el, name, alt) {
  fill(el, h('img.server-chart', {alt, src: url(studyPath(name, '/report'), {format: 'svg'})}), h('p.soft.small', null, WHY));
}

let kept = {name: null, report: null};

/* The report as {style, page}; the server makes one at a time and says so with 503. Its style is cut out before it is parsed:
 * the pages forbid inline style, even in a document that is never shown. */
function report(name, signal) {
  if (kept.name === name) return kept.report;
  const read = async () => {
    for (let wait = 500; ; wait *= 1.5) {
      try {
        const [before, style, after] = (await text(studyPath(name, '/report'), {format: 'html'}, signal)).split(/<\/?style>/);
        return {style, page: new DOMParser().parseFromString(before + after, 'text/html')};
      } catch (problem) {
        if (problem.status !== 503 || wait > 20000) throw problem;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  };
  kept = {name, report: read()};
  kept.report.catch(() => { kept = {name: null, report: null}; });
  return kept.report;
}

/* The study has changed: the next figures come from a new report. */
export function forgetReport() {
  kept = {name: null, report: null};
}

/* Puts what the report has at selector into el; says so when it has no such figure. */
export async function serverFigures(el, name, selector, signal) {
  fill(el, h('p.soft', null, 'The server draws it…'));
  const {style, page} = await report(name, signal), found = page.querySelector(selector);
  if (!found) {
    fill(el, h('p.soft', null, 'The report has nothing here yet.'));
    return;
  }
  const host = h('div.server-figures'), sheet = new CSSStyleSheet();
  sheet.replaceSync(style.replaceAll(':root', ':host'));
  const root = host.attachShadow({mode: 'open'});
  root.adoptedStyleSheets = [sheet];
  root.append(document.importNode(found, true));
  fill(el, host, h('p.soft.small', null, WHY));
}
