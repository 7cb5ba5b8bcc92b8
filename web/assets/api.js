/* api.js - requests to the server. docs/http-api.md describes the answers.
 * A failure is an ApiError with the server's text; without a server its status is 0. */

import {site} from './address.js';
import {revive} from './stream.js';

export class ApiError extends Error {
  constructor(status, text, hint) {
    super(text);
    this.status = status;
    this.hint = hint;
  }
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
    throw new ApiError(0, 'The server does not answer.', 'Is trawl serve still running? This page reconnects when it answers.');
  }
  if (!response.ok) throw await failed(response);
  return response;
}

export async function get(path, query, signal) {
  if (site) return (await import('./site.js')).answer(path, query ?? {});
  const response = await request(url(path, query), {signal, headers: {Accept: 'application/json'}});
  return JSON.parse(await response.text(), revive);
}

/* An answer that takes long: the server makes one at a time. */
export async function getSlow(path, query, signal) {
  for (let wait = 500; ; wait = Math.min(wait * 1.5, 4000)) {
    try {
      return await get(path, query, signal);
    } catch (problem) {
      if (problem.status !== 503) throw problem;
    }
    await rest(wait, signal);
  }
}

function rest(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => { clearTimeout(timer); reject(new DOMException('left the page', 'AbortError')); }, {once: true});
  });
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
    await rest(wait, signal);
  }
}
