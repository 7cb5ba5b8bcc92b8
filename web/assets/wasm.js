/* wasm.js - a built-in game and a policy in the page itself: web/wasm/game.c as WebAssembly, and what it takes of a C library that is
 * text or mathematics. */

const KINDS = [['r', 4], ['c', 3], ['l', 5], ['t', 3]]; /* as enum env_shape_kind: shape and how many of its numbers */

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/* printf's conversions that pictures use: %d %+d %lld %.Nf %s %c. next(kind): the next argument. */
export function formatText(format, next) {
  return format.replace(/%(\+?)(?:\.(\d+))?(ll|l|z)?([cdfs%])/g, (_, plus, digits, size, kind) => {
    if (kind === '%') return '%';
    const value = next(kind === 'd' && size === 'll' ? 'i64' : kind === 'd' || kind === 'c' ? 'i32' : kind === 'f' ? 'f64' : 'text');
    return `${plus && value >= 0 ? '+' : ''}${kind === 'f' ? value.toFixed(digits ?? 6) : kind === 'c' ? String.fromCharCode(value) : value}`;
  });
}

/* scanf's conversions that trawl_policy.h uses; put(kind, value) for each that is stored. Returns how many; %n does not count. */
export function scanText(text, format, put) {
  let at = 0, n = 0;
  for (const [, space, skip, width, size, kind, literal] of format.matchAll(/(\s+)|%(\*?)(\d*)(ll|l|z)?([dufsn])|([^\s%])/g)) {
    if (space || (kind && kind !== 'n')) while (/\s/.test(text[at] ?? '')) at++;
    if (space) continue;
    if (literal !== undefined) {
      if (text[at] !== literal) return n;
      at++;
    } else if (kind === 'n') {
      put('i32', at);
    } else {
      const word = text.slice(at).match(kind === 's' ? new RegExp(`^\\S{1,${width || 4096}}`) : kind === 'f' ? /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/ : /^[-+]?\d+/)?.[0];
      if (word === undefined) return n;
      at += word.length;
      if (skip) continue;
      put(kind === 's' ? 'text' : kind === 'f' ? (size === 'l' ? 'f64' : 'f32') : size === 'll' ? 'i64' : 'i32', kind === 's' ? word : Number(word));
      n++;
    }
  }
  return n;
}

/* settings, policy: base64. Returns {step(greedy) -> frame, forward(obs, begins) -> columns}; throws where it cannot be played. */
export async function openGame(module64, settings, policy, seed) {
  const module = await WebAssembly.compile(bytesOf(module64));
  let wasm = null, marks = [];
  const view = () => new DataView(wasm.memory.buffer), bytes = () => new Uint8Array(wasm.memory.buffer);
  const textAt = (at) => { const all = bytes(); return new TextDecoder().decode(all.slice(at, all.indexOf(0, at))); };
  const store = (at, text, room) => { const b = new TextEncoder().encode(text).slice(0, room - 1); bytes().set(b, at); bytes()[at + b.length] = 0; };
  const own = {
    mark(kind, a, b, c, d, e, align, colour, text) {
      const [name, n] = KINDS[kind];
      marks.push([name, ...[a, b, c, d, e].slice(0, n), ...(name === 't' ? [align, colour, textAt(text)] : [colour])]);
    },
    vsnprintf(to, room, format, args) {
      const text = formatText(textAt(format), (kind) => {
        if (kind !== 'i32' && kind !== 'text') args = (args + 7) & ~7;
        const v = view(), value = kind === 'i64' ? v.getBigInt64(args, true) : kind === 'f64' ? v.getFloat64(args, true) : v.getInt32(args, true);
        args += kind === 'i64' || kind === 'f64' ? 8 : 4;
        return kind === 'text' ? textAt(value) : value;
      });
      if (room > 0) store(to, text, room);
      return text.length;
    },
    sscanf(text, format, args) {
      return scanText(textAt(text), textAt(format), (kind, value) => {
        const v = view(), to = v.getUint32(args, true);
        args += 4;
        if (kind === 'text') store(to, value, 1e6);
        else if (kind === 'f64') v.setFloat64(to, value, true);
        else if (kind === 'f32') v.setFloat32(to, value, true);
        else if (kind === 'i64') v.setBigInt64(to, BigInt(value), true);
        else v.setInt32(to, value, true);
      });
    },
    fmin: Math.min, fmax: Math.max, fabs: Math.abs, copysign: (x, y) => (Math.sign(y) < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)), fmod: (x, y) => x % y, rint: (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; },
  };
  const env = Object.fromEntries(WebAssembly.Module.imports(module).map(({name}) => [name, own[name] ?? own[name.replace(/f$/, '')] ?? Math[name] ?? Math[name.replace(/f$/, '')]]));
  wasm = (await WebAssembly.instantiate(module, {env})).exports;
  const put = (data) => { const at = wasm.game_room(data.length); bytes().set(data, at); return at; };
  const own_settings = bytesOf(settings), own_policy = bytesOf(policy);
  if (own_settings.length !== wasm.game_settings_bytes()) throw new Error('the game is of another version');
  const at = put(own_settings), file = put(own_policy);
  if (wasm.game_open(at, file, own_policy.length, seed >>> 0) !== 0) throw new Error('the policy cannot be played here');
  let step = 0, episodes = 0, total = 0, done = 0, seen = 0;
  return {
    step(greedy) {
      total += wasm.game_step(greedy ? 1 : 0);
      marks = [];
      wasm.game_draw();
      const frame = {step: ++step, episode: episodes, score: total, draw: marks, width: wasm.game_width(), height: wasm.game_height()};
      done = wasm.game_episodes();
      if (done > seen) [seen, episodes, total] = [done, episodes + 1, 0];
      return frame;
    },
    /* sums over the episodes that have ended */
    log: () => ({episodes: wasm.game_episodes(), score: wasm.game_score(), perf: wasm.game_perf()}),
    forward(obs, begins) {
      const room = wasm.game_room(4 * obs.length);
      new Float32Array(wasm.memory.buffer, room, obs.length).set(obs);
      const out = wasm.game_forward(room, begins ? 1 : 0);
      return (n) => [...new Float32Array(wasm.memory.buffer, out, n)];
    },
  };
}
