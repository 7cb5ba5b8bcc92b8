/* play.js - watch a policy play: the server steps the game with the trial's checkpoint and streams what to draw. */
import {studyPath, url} from './api.js';
import {fill, h} from './dom.js';
import * as fmt from './format.js';

function role(index) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--game-${index}`).trim() || '#888';
}

export function paint(canvas, begin, commands, roles) {
  const ctx = canvas.getContext('2d'), scale = canvas.width / begin.width;
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.fillStyle = roles[0];
  ctx.fillRect(0, 0, begin.width, begin.height);
  for (const [kind, ...a] of commands) {
    if (kind === 'r') {
      ctx.fillStyle = roles[a[4]];
      ctx.fillRect(a[0], a[1], a[2], a[3]);
    } else if (kind === 'c') {
      ctx.fillStyle = roles[a[3]];
      ctx.beginPath();
      ctx.arc(a[0], a[1], a[2], 0, 2 * Math.PI);
      ctx.fill();
    } else if (kind === 'l') {
      ctx.strokeStyle = roles[a[5]];
      ctx.lineWidth = a[4];
      ctx.beginPath();
      ctx.moveTo(a[0], a[1]);
      ctx.lineTo(a[2], a[3]);
      ctx.stroke();
    } else if (kind === 't') {
      ctx.fillStyle = roles[a[4]];
      ctx.font = `${a[2]}px system-ui, sans-serif`;
      ctx.textAlign = a[3] < 0 ? 'left' : a[3] > 0 ? 'right' : 'center';
      ctx.fillText(a[5], a[0], a[1]);
    }
  }
}

export function player(el, name, trial, ctx) {
  let source = null, begin = null, roles = [];
  const canvas = h('canvas', {role: 'img', 'aria-label': 'the policy playing', hidden: true}), status = h('span.play-score', {role: 'status'});
  const button = h('button', {type: 'button', onclick: () => (source ? stop('') : start())}, 'Watch it play');
  const greedy = h('input', {type: 'checkbox', checked: true});
  const seed = h('input', {type: 'number', value: '1', min: '0', 'aria-label': 'seed of the game'});
  seed.style.width = '80px';
  fill(el, h('div.play', null, h('div.row', null, button, h('label.small', {title: 'the likeliest action instead of a draw'}, greedy, ' likeliest action'), h('label.small', null, 'seed ', seed), status), canvas));

  function stop(text) {
    source?.close();
    source = null;
    button.textContent = 'Watch it play';
    if (text !== undefined) status.textContent = text;
  }
  function start() {
    roles = Array.from({length: 12}, (_, i) => role(i));
    status.textContent = 'starting…';
    button.textContent = 'Stop';
    source = new EventSource(url(studyPath(name, `/trials/${trial}/play`), {seed: seed.value, greedy: greedy.checked ? 1 : 0, fps: 15}));
    source.addEventListener('begin', (event) => {
      begin = JSON.parse(event.data);
      const width = Math.min(960, Math.max(320, canvas.parentElement.clientWidth)) * Math.min(2, devicePixelRatio || 1);
      canvas.width = width;
      canvas.height = Math.round(width * begin.height / begin.width);
      canvas.hidden = false;
    });
    source.addEventListener('frame', (event) => {
      const frame = JSON.parse(event.data);
      canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
      paint(canvas, begin, frame.draw, roles);
      status.textContent = `step ${frame.step}, score ${fmt.number(frame.score)}, episode ${frame.episode}`;
    });
    source.addEventListener('end', (event) => stop(JSON.parse(event.data).reason || 'ended'));
    source.onerror = () => { if (source) stop(begin ? 'the stream has ended' : 'the server cannot play it now; try again in a moment'); };
  }
  ctx.onLeave(() => stop());
}
