/* api.js - requests to the server. docs/http-api.md describes the answers.
 * A failure is an ApiError with the server's text; without a server its status is 0. */

export class ApiError extends Error {
  constructor(status, text, hint) {
    super(text);
    this.status = status;
    this.hint = hint;
  }
}

/* Infinite numbers come as strings. */
function revive(key, value) {
  return value === 'inf' ? Infinity : value === '-inf' ? -Infinity : value;
}

async function failed(response) {
  let body = {};
  try {
    body = await response.json();
  } catch { /* no JSON: only the status */ }
  if (response.status === 401) return new ApiError(401, body.error || 'The server asks for its token.', body.hint || 'Open the address that trawl serve printed, or go to /login.');
  return new ApiError(response.status, body.error || `The server answered ${response.status}.`, body.hint);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (problem) {
    if (problem.name === 'AbortError') throw problem;
    throw new ApiError(0, 'The server does not answer.', 'Is trawl serve still running? This page comes back by itself.');
  }
  if (!response.ok) throw await failed(response);
  return response;
}

export async function get(path, query, signal) {
  const response = await request(url(path, query), {signal, headers: {Accept: 'application/json'}});
  return JSON.parse(await response.text(), revive);
}

export async function post(path, body, csrf) {
  const response = await request(path, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Trawl-Csrf': csrf || ''}, body: JSON.stringify(body)});
  return response.json();
}

export function url(path, query) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query || {})) if (value !== undefined && value !== null && value !== '') params.set(key, value);
  const tail = params.toString();
  return tail ? `${path}?${tail}` : path;
}

/* The API's path of a study. Dots are encoded too: a browser would fold "." and ".." away. */
export function studyPath(name, rest = '') {
  return `/api/v1/studies/${encodeURIComponent(name).replace(/^\.+$/, (dots) => dots.replaceAll('.', '%2E'))}${rest}`;
}

/* While the model is not computed yet, tries again until it is or signal ends it. */
export async function getModel(path, query, signal) {
  for (let wait = 400; ; wait = Math.min(wait * 1.6, 5000)) {
    const answer = await get(path, query, signal);
    if (answer.model !== 'computing') return answer;
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, wait);
      signal?.addEventListener('abort', () => { clearTimeout(timer); reject(new DOMException('left the page', 'AbortError')); }, {once: true});
    });
  }
}

/* A store that went away: the page stays, with the time of its data. */
export function tellStore(problem) {
  const at = document.getElementById('gone');
  at.hidden = !problem;
  at.textContent = problem ? `${problem}. These pages show what was read before; they continue by themselves when it is back.` : '';
}

const EVENTS = ['hello', 'reset', 'studies', 'study', 'trial', 'progress', 'model', 'store'];

/* Live changes: on(event name, data); state('live' | 'lost'). Returns a function that closes it. The browser reconnects by itself, and
 * the server sends the missed events, or reset. */
export function listen(study, on, state) {
  const source = new EventSource(url('/api/v1/events', {study}));
  for (const name of EVENTS)
    source.addEventListener(name, (event) => {
      state('live');
      const data = JSON.parse(event.data || '{}', revive);
      if (name === 'store') tellStore(data.ok ? null : data.error);
      on(name, data);
    });
  source.onopen = () => state('live');
  let again = 0;
  source.onerror = () => {
    state('lost');
    if (source.readyState === EventSource.CLOSED && !again) again = setTimeout(() => on('retry', {}), 5000);
  };
  return () => { clearTimeout(again); source.close(); };
}
