/* play.js - watch a policy play: the server steps the game with the trial's checkpoint and streams what to draw; in a site without a
 * server the page plays the game itself (wasm.js), or shows what was recorded. */
import {site} from './address.js';
import {studyPath, url} from './api.js';
import {fill, h} from './dom.js';
import * as fmt from './format.js';

function role(index) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--game-${index}`).trim() || '#888';
}

/* An image is clear where the one before stays; its pixels are the canvas's own, so that both meet without a seam. */
async function show(canvas, begin, gif) {
  const image = new Image();
  image.src = `data:image/gif;base64,${gif}`;
  await image.decode();
  if (canvas.width !== begin.width || canvas.height !== begin.height) Object.assign(canvas, {width: begin.width, height: begin.height});
  canvas.getContext('2d').drawImage(image, 0, 0);
}

async function paint(canvas, begin, commands, roles) {
  if (commands[0]?.[0] === 'i') return show(canvas, begin, commands[0][1]);
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

const FPS = 15;

/* A source calls on.begin({width, height}), on.frame({step, score, episode, draw}) and on.end(reason); it has close(). */
function fromServer(name, trial, seed, greedy, on, csrf) {
  const source = new EventSource(url(studyPath(name, `/trials/${trial}/play`), {seed, greedy: greedy ? 1 : 0, fps: FPS, csrf}));
  let begun = false;
  source.addEventListener('begin', (event) => { begun = true; on.begin(JSON.parse(event.data)); });
  source.addEventListener('frame', (event) => on.frame(JSON.parse(event.data)));
  source.addEventListener('end', (event) => on.end(JSON.parse(event.data).reason || 'ended'));
  source.onerror = () => on.end(begun ? 'the stream has ended' : 'the server cannot play it now; try again in a moment');
  return source;
}

function fromSite(name, trial, seed, greedy, on) {
  let timer = 0, closed = false;
  (async () => {
    const {part, playOf} = await import('./site.js'), data = await playOf(name, trial);
    let next = null, k = 0;
    if (data.policy) {
      const {openGame} = await import('./wasm.js'), game = await openGame(await part(`games/${data.begin.env}`), data.settings, data.policy, seed);
      next = () => game.step(greedy);
    } else next = () => data.frames[k++];
    if (closed) return;
    on.begin(data.begin);
    timer = setInterval(() => { const frame = next(); frame ? on.frame(frame) : on.end('the end of what was recorded'); }, 1000 / FPS);
  })().catch((problem) => { if (!closed) on.end(problem.message); });
  return {close() { closed = true; clearInterval(timer); }};
}

export function player(el, name, trial, ctx) {
  let source = null, begin = null, roles = [], painted = Promise.resolve();
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
  const on = {
    begin(data) {
      begin = data;
      const width = Math.min(960, Math.max(320, canvas.parentElement.clientWidth)) * Math.min(2, devicePixelRatio || 1);
      canvas.width = width;
      canvas.height = Math.round(width * begin.height / begin.width);
      canvas.hidden = false;
    },
    frame(frame) {
      const from = source;
      painted = painted.then(async () => { /* in their order, which decoding does not keep */
        if (source !== from) return;
        await paint(canvas, begin, frame.draw, roles);
        canvas.dataset.frames = Number(canvas.dataset.frames || 0) + 1;
        if (source === from) status.textContent = `step ${frame.step}, score ${fmt.number(frame.score)}, episode ${frame.episode}`;
      }).catch((problem) => on.end(problem.message));
    },
    end(reason) { if (source) stop(reason); },
  };
  function start() {
    roles = Array.from({length: 12}, (_, i) => role(i));
    status.textContent = 'starting…';
    button.textContent = 'Stop';
    source = (site ? fromSite : fromServer)(name, trial, seed.value, greedy.checked, on, ctx.version.csrf);
  }
  ctx.onLeave(() => stop());
}
