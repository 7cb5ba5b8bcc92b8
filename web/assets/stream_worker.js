/* stream_worker.js - one connection for all pages of a browser: six to a server are what browsers open, and each page needs some to read
 * with. A page says {study} to follow it (null: all), {nudge} when it is looked at, {bye} when it goes; it gets {status} and
 * {name, data}. */
import {Stream} from './stream.js';

const pages = new Map(); /* port: the study that it follows, or null */
let stream = null;

function send(name, data) {
  for (const [port, study] of pages) if (!study || !data.study || data.study === study) port.postMessage({name, data});
}

function pass(status) {
  for (const port of pages.keys()) port.postMessage({status});
}

function heard(port, message) {
  if (message.bye) {
    pages.delete(port);
    if (!pages.size) { stream?.close(); stream = null; }
    return;
  }
  if (message.nudge) { stream?.nudge(); return; }
  pages.set(port, message.study);
  stream ??= new Stream(send, pass);
  port.postMessage({status: stream.status});
  if (stream.status.state === 'live') port.postMessage({name: 'hello', data: {version: stream.version}});
}

addEventListener('connect', (event) => {
  const port = event.ports[0];
  port.onmessage = ({data}) => heard(port, data);
});
addEventListener('online', () => stream?.nudge());
