/* stream.js - the server's events over one connection: reads them, notices silence, connects again.
 * Runs in the worker that all pages of a browser share (stream_worker.js), or in the page where there is no such worker.
 *
 * The server sends a pulse every second, so silence means that it is gone, stands still or cannot be reached. */

const SILENT_MS = 3500, WAIT_MIN_MS = 400, WAIT_MAX_MS = 3000, LOOK_MS = 500;

/* Infinite numbers come as strings. */
export function revive(key, value) {
  return value === 'inf' ? Infinity : value === '-inf' ? -Infinity : value;
}

export class Stream {
  /* on(name, data): an event. status(s): {state: 'connecting', 'live', 'lost' or 'login', why, heard_ms, age_s, store}; heard_ms: when
   * the server was heard last; age_s: how old its look at the store was then; store: what is wrong with the store, or null. */
  constructor(on, status) {
    Object.assign(this, {on, changed: status, lastId: null, wait: WAIT_MIN_MS, gone: null, timer: 0, version: 0});
    this.status = {state: 'connecting', why: '', heard_ms: 0, age_s: 0, store: null, program: null};
    this.watch = setInterval(() => this.look(), LOOK_MS);
    this.connect();
  }

  close() {
    clearInterval(this.watch);
    clearTimeout(this.timer);
    this.watch = 0;
    this.gone?.abort();
  }

  /* A page was looked at again, or there is a network again: no more waiting. */
  nudge() {
    this.look();
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.connect();
  }

  update(changes) {
    Object.assign(this.status, changes);
    this.changed(this.status);
  }

  look() {
    if (this.gone && Date.now() - this.begun > SILENT_MS && Date.now() - this.status.heard_ms > SILENT_MS) this.gone.abort();
  }

  async connect() {
    const gone = this.gone = new AbortController();
    this.timer = 0;
    this.begun = Date.now();
    let why = 'the server does not answer', state = 'lost';
    try {
      const headers = {Accept: 'text/event-stream', ...(this.lastId ? {'Last-Event-ID': this.lastId} : {})};
      const response = await fetch('/api/v1/events', {headers, cache: 'no-store', signal: gone.signal});
      if (response.ok) {
        await this.read(response.body.pipeThrough(new TextDecoderStream()).getReader());
        why = 'the server has ended the connection';
      } else {
        why = `the server answered ${response.status}`;
        state = response.status === 401 ? 'login' : 'lost';
      }
    } catch { /* no network, no server, silence */ }
    this.gone = null;
    gone.abort();
    if (!this.watch) return;
    this.update({state, why});
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(2 * this.wait, WAIT_MAX_MS);
  }

  async read(reader) {
    for (let rest = ''; ;) {
      const {value, done} = await reader.read();
      if (done) return;
      this.status.heard_ms = Date.now();
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const part of parts) this.take(part);
    }
  }

  take(text) {
    const event = {event: 'message', data: ''};
    for (const line of text.split('\n')) {
      const at = line.indexOf(': ');
      if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
    }
    if (event.id) this.lastId = event.id;
    if (!event.data) return;
    const data = JSON.parse(event.data, revive);
    if (data.version > this.version) this.version = data.version;
    this.wait = WAIT_MIN_MS;
    if (event.event === 'pulse') this.update({state: 'live', why: '', age_s: data.age_s});
    else if (event.event === 'hello') this.update({state: 'live', why: '', age_s: 0, store: data.store, program: data.program});
    else if (event.event === 'store') this.update({store: data.ok ? null : data.error});
    this.on(event.event, data);
  }
}
