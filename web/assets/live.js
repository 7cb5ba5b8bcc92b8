/* live.js - what keeps a page right, and what it says of that: the dot at the top and the line below it.
 *
 * A page is live while the server is heard, its look at the store is young, the store can be read and the page's own reading
 * succeeds. Else it says since when not, and keeps trying. */
import {site} from './address.js';
import {Stream} from './stream.js';
import * as fmt from './format.js';
import {fill, h} from './dom.js';

const OLD_S = 5, REST_MS = 1000, HIDDEN_REST_MS = 1500, RETRY_MAX_MS = 4000;

const dot = document.getElementById('live'), banner = document.getElementById('gone');
let status = {state: 'connecting', heard_ms: 0, age_s: 0, store: null, program: null};
let follower = null; /* of the page that is shown: {heard(name, data), problem} */
let program = null, said = '';

/* -- what the page says -- */

function loginUrl() {
  return `/login?${new URLSearchParams({next: location.pathname + location.search})}`;
}

/* [class, text] of the dot. */
function summary() {
  const problem = follower?.problem;
  const data = status.heard_ms ? `data of ${fmt.clock(status.heard_ms - 1000 * status.age_s)}` : 'no data yet';
  if (site) return ['', `as of ${fmt.time(site.made_ms)}`];
  if (!follower) return ['', ''];
  if (status.state === 'login') return ['lost', `the server asks for its token; ${data}`];
  if (status.state === 'lost') return ['lost', `not connected, trying again; ${data}`];
  if (status.store) return ['lost', 'the store cannot be read'];
  if (problem) return ['lost', problem.status === 404 ? 'not there any more' : 'not up to date, trying again'];
  if (status.state === 'connecting') return ['', 'connecting…'];
  if (status.age_s > OLD_S) return ['lost', `${data}: the server is busy`];
  return ['on', 'live'];
}

function bannerParts() {
  const problem = follower?.problem;
  if (status.state === 'login') return ['The server asks for its token. ', h('a', {href: loginUrl()}, 'Give it'), '; this page stays as it is until then.'];
  if (status.store) return [`${status.store}. These pages show what was read before; they update again when it is back.`];
  if (problem?.status === 404) return [`${problem.message}. This page shows what was read before.`];
  if (program && status.program && program !== status.program) return ['The server is another version now. ', h('a', {href: location.href, onclick: () => location.reload()}, 'Load the page again')];
  return [];
}

function show() {
  const [kind, text] = summary(), parts = bannerParts(), now = [kind, text, ...parts.map((p) => p.textContent ?? p)].join('\n');
  if (now === said) return;
  said = now;
  dot.className = `live ${kind}`;
  dot.textContent = text;
  banner.hidden = !parts.length;
  fill(banner, parts);
}

/* What /version answered when the page was opened; the stream has the news after that. */
export function begin(version) {
  program ??= version.program;
  if (status.state === 'connecting') status = {...status, store: version.store_error};
  show();
}

/* -- the stream -- */

function heard(message) {
  if (message.status) status = message.status;
  else if (follower) follower.heard(message.name, message.data);
  show();
}

/* {say(message)} of a stream that lives in this page. */
function ownStream() {
  let stream = null, study = null;
  return {say(message) {
    if (message.bye) { stream?.close(); stream = null; return; }
    if (message.nudge) { stream?.nudge(); return; }
    study = message.study;
    if (stream) heard({name: 'hello', data: {version: stream.version}});
    stream ??= new Stream((name, data) => { if (!study || !data.study || data.study === study) heard({name, data}); }, (s) => heard({status: {...s}}));
  }};
}

function connect() {
  if (!window.SharedWorker) return ownStream();
  const worker = new SharedWorker('/assets/stream_worker.js', {type: 'module', name: 'trawl'});
  let own = null, last = null;
  worker.port.onmessage = ({data}) => heard(data);
  worker.onerror = () => { /* it did not load: the page does it alone */
    own ??= ownStream();
    if (last) own.say(last);
  };
  return {say(message) {
    if (message.study !== undefined) last = message;
    if (own) own.say(message);
    else worker.port.postMessage(message);
  }};
}

let line = null;
const say = (message) => { line ??= connect(); line.say(message); };
addEventListener('pagehide', () => line?.say({bye: true}));
document.addEventListener('visibilitychange', () => { if (!document.hidden && follower) { say({nudge: true}); follower.look(); } });

/* Follows a study (null: all) until the page is left. refresh() is called soon after each event for which wants(name, data) is true,
 * after each loss of the connection, and again after a failure: never twice at a time, never one lost. A hidden page is
 * refreshed less often, by the pulse: browsers hold back its timers. on(name, data): every event. */
export function follow(ctx, study, wants, refresh, on = () => {}) {
  if (site) return;
  let busy = false, wanted = false, timer = 0, ended_ms = 0, retry = REST_MS, version = ctx.version?.data_version ?? -1;
  const rest = () => (document.hidden ? HIDDEN_REST_MS : REST_MS);

  async function run() {
    timer = 0;
    busy = true;
    wanted = false;
    try {
      await refresh();
      me.problem = null;
      retry = REST_MS;
    } catch (problem) {
      if (ctx.signal.aborted) return;
      console.info(problem);
      me.problem = problem;
      wanted = true;
      retry = Math.min(2 * retry, RETRY_MAX_MS);
    }
    busy = false;
    ended_ms = Date.now();
    show();
    if (wanted) look();
  }
  function look() {
    if (busy || !wanted || ctx.signal.aborted) return;
    const left = ended_ms + (me.problem ? retry : rest()) - Date.now();
    if (left <= 0) { clearTimeout(timer); run(); } else if (!document.hidden) timer ||= setTimeout(run, left);
  }
  const me = {problem: null, look, heard(name, data) {
    if (name === 'hello' ? data.version > version : name === 'reset' || name === 'store' || (name !== 'pulse' && wants(name, data))) wanted = true;
    if (name === 'hello') version = -1; /* of the next connection: it may have missed something */
    else if (name !== 'pulse') on(name, data);
    look();
  }};
  follower = me;
  ctx.onLeave(() => { clearTimeout(timer); if (follower === me) follower = null; show(); });
  say({study});
  show();
}
