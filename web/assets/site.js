/* site.js - the answers of a site that `trawl report --site` wrote: of the addresses of docs/http-api.md, out of scripts that the page
 * loads (web/site/site.c), for a page on disk can read nothing else. A part is loaded when it is needed, and once. */
import {site} from './address.js';
import {ApiError} from './api.js';
import {revive} from './stream.js';

const CHUNK = 100; /* trials of a file: web/site/site_trials.c */

const waiting = new Map(), parts = new Map();
globalThis.trawlData = (name, data) => waiting.get(name)?.(JSON.parse(JSON.stringify(data), revive));

/* The data of data/NAME.js. */
export function part(name) {
  if (!parts.has(name))
    parts.set(name, new Promise((resolve, reject) => {
      const script = document.createElement('script');
      waiting.set(name, resolve);
      script.src = `data/${name}.js`;
      script.onerror = () => { parts.delete(name); reject(new ApiError(0, `This site lacks its file data/${name}.js.`, 'Copy the whole folder that trawl report --site wrote.')); };
      document.head.append(script);
    }));
  return parts.get(name);
}

function known(answer, what) {
  if (answer === undefined) throw new ApiError(404, `This site does not hold ${what}.`, 'trawl serve shows it.');
  if (answer?.refused) throw new ApiError(404, answer.refused);
  return answer;
}

function folder(study) {
  return known(site.folders[study], `the study '${study}'`);
}

async function trialOf(study, n) {
  return known((await part(`${folder(study)}/trials/${Math.floor(n / CHUNK)}`))[n], `trial ${n} of ${study}`);
}

/* /trials/N: its config refers to that of trial 0, and may stand beside another's. */
async function trialAnswer(study, n, against) {
  const first = (await part(`${folder(study)}/trials/0`)).config, whole = (config) => config.map((row) => (typeof row === 'number' ? first[row] : row));
  const {trial} = await trialOf(study, n), answer = {...trial, config: whole(trial.config)};
  if (against === null || against === undefined || against === '') return answer;
  const other = new Map(whole((await trialOf(study, Number(against))).trial.config).map((row) => [row.key, row.value]));
  return {...answer, against: Number(against), config: answer.config.map((row) => ({...row, against: other.get(row.key) ?? null}))};
}

async function trial(study, n, what, query) {
  if (!what) return trialAnswer(study, n, query.against);
  const kept = await trialOf(study, n);
  if (what !== 'curves') return known(kept[what], `${what} of trial ${n}`);
  const main = (await part(`${folder(study)}/study`))[''].metric, names = query.metrics ? query.metrics.split(',') : [Object.keys(kept.curves).find((name) => name === main || name.endsWith(`/${main}`)) ?? main];
  return {curves: Object.fromEntries(names.filter((name) => kept.curves[name]).map((name) => [name, kept.curves[name]]))};
}

/* Some of the studies that were compared when the site was made: to the reference of all of them. */
function compare(names) {
  const all = known(site.compare ?? undefined, 'more than one study'), has = (name) => names.includes(name);
  const studies = all.studies.filter((s) => has(s.study)), keep = all.studies.map((s) => has(s.study));
  const whole = (group) => all.studies.every((s) => s.group !== group || has(s.study));
  return {...all, studies, attained: all.attained.filter((row) => whole(row.group)),
    differences: all.differences.map((row) => ({...row, values: row.values.filter((_, k) => keep[k])})).filter((row) => new Set(row.values).size > 1)};
}

/* A slice or a map: through the picks and the front's trials. */
async function model(at, key, place) {
  const through = /^\d+$/.test(place) ? `trial ${place}` : place;
  const kept = await part(`${at}/models/${place}`).catch(() => ({}));
  return known(kept[key], key.includes(' ') ? `this map through ${through}` : `slices through ${through}`);
}

/* The answer to GET path with this query. */
export async function answer(path, query) {
  const [, , , kind, study, ...tail] = path.split('/').map(decodeURIComponent);
  if (kind === 'version') return site.version;
  if (kind === 'compare') return compare(JSON.parse(query.studies));
  if (!study) return site.studies;
  if (tail[0] === 'trials' && tail.length > 1) return trial(study, Number(tail[1]), tail[2], query);
  const at = folder(study), address = `/${tail.join('/')}`;
  if (address === '/trials') return known((await part(`${at}/trials`))[query.offset ?? 0], 'these trials');
  if (address === '/model/slice' || address === '/model/contour') return model(at, address === '/model/slice' ? query.param : `${query.x} ${query.y}`, query.at);
  const whole = {'/pick': `/pick?rule=${encodeURIComponent(query.rule)}`, '/hypervolume': '/hypervolume?points=240', '/': ''}[address] ?? address;
  return known((await part(`${at}/study`))[whole], whole || 'this study');
}

/* The texts of `trawl export`: {ini, json, args}, of trials on the front and the like. */
export async function exportsOf(study, n) {
  return (await trialOf(study, n)).exports ?? {};
}

/* {begin, policy, settings, frames} of a trial that plays. */
export async function playOf(study, n) {
  return part(`${folder(study)}/play/${n}`);
}
