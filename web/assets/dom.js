/* dom.js - elements from data. Text goes in as text nodes only, so no study's name can become markup. */

/* h('a.link', {href: '#/', onclick: f}, 'text', child, [more]): null and false children are left out. */
export function h(what, attrs, ...children) {
  const [tag, ...classes] = what.split('.');
  const el = document.createElement(tag || 'div');
  if (classes.length) el.className = classes.join(' ');
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'hidden') el[key] = value;
    else el.setAttribute(key, value === true ? '' : value);
  }
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const child of Array.isArray(children) ? children : [children]) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(el, child);
    else el.append(child instanceof Node ? child : String(child));
  }
  return el;
}

export function fill(el, ...children) {
  el.replaceChildren();
  return add(el, children);
}

/* Makes el show these children with as few changes as possible: what is the same stays the same element, with its focus, its scrolled
 * place and what is selected in it. Children with data-key are found again by it. Listeners of elements that stay are the first
 * ones: they must not depend on what changes. */
export function renew(el, ...children) {
  renewChildren(el, add(document.createElement(el.localName), children));
}

function renewChildren(old, fresh) {
  const key = (node) => node.dataset?.key, kept = new Map([...old.childNodes].filter(key).map((node) => [key(node), node]));
  const wanted = new Set([...fresh.childNodes].map(key).filter(Boolean));
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    while (at && key(at) && !wanted.has(key(at))) { const gone = at; at = at.nextSibling; gone.remove(); }
    const same = key(node) ? kept.get(key(node)) : at && !key(at) ? at : null;
    if (!same || same.nodeType !== node.nodeType || same.localName !== node.localName) {
      old.insertBefore(node, at);
      if (same && same === at) { at = at.nextSibling; same.remove(); }
      continue;
    }
    if (same !== at) old.insertBefore(same, at);
    else at = at.nextSibling;
    if (!same.isEqualNode(node)) renewNode(same, node);
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
}

function renewNode(old, fresh) {
  if (!old.localName) { old.data = fresh.data; return; }
  for (const {name} of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  renewChildren(old, fresh);
}

/* A card with a heading; extra (buttons) is at its right. */
export function card(title, body, {note, extra, id, wide} = {}) {
  return h(`section.card${wide ? '.wide' : ''}`, {id},
    h('div.card-head', null, h('h2', null, title, note ? h('small', null, ' ', note) : null), extra ? h('div.card-extra', null, extra) : null),
    body);
}

/* Buttons of which one is pressed: choices [[value, text, title]]; on(value). */
export function segments(label, choices, value, on) {
  const name = `radio ${label}`;
  return h('div.segments', {role: 'radiogroup', 'aria-label': label}, choices.map(([key, text, title]) => h('label', {title},
    h('input', {type: 'radio', name, value: key, checked: key === value, onchange: () => on(key)}), h('span', null, text))));
}

/* A table that scrolls. heads: texts or {num: text}, a column of numbers; rows: of h('tr'). */
export function table(heads, rows, {kind = '', tall = false, caption} = {}) {
  return h(`div.scroll${tall ? '.tall' : ''}`, {tabindex: '0'}, h(`table${kind}`, null, caption && h('caption.sr', null, caption),
    h('thead', null, h('tr', null, heads.map((head) => (head && head.num !== undefined ? h('th.num', {scope: 'col'}, head.num) : h('th', {scope: 'col'}, head))))), h('tbody', null, rows)));
}

/* The context of a canvas of this size, in CSS pixels whatever the screen has. */
export function canvasContext(canvas, width, height) {
  const scale = Math.min(2, devicePixelRatio || 1), ctx = canvas.getContext('2d');
  Object.assign(canvas, {width: Math.round(width * scale), height: Math.round(height * scale)});
  Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  return ctx;
}

/* Where the pointer is, from el's corner. */
export function pointerAt(event, el) {
  const box = el.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/* A key of a legend. */
export function legendKey(mark, text) {
  return h('span.key', null, h(`i.mark.${mark}`, {'aria-hidden': 'true'}), text);
}

export function tile(value, label, title) {
  return h('div.tile', {title}, h('b', null, value), h('span', null, label));
}

export function empty(text, ...what) {
  return h('div.empty', null, h('p', null, text), what);
}

/* A button that copies; without the clipboard (plain http from another host) the text is selected instead. */
export function copyButton(text, label = 'Copy') {
  const button = h('button.small', {type: 'button', title: 'Copy to the clipboard'}, label);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.parentElement.querySelector('code')?.textContent ?? text);
      button.textContent = 'Copied';
    } catch {
      const code = button.parentElement.querySelector('code');
      if (code) getSelection().selectAllChildren(code);
      button.textContent = 'Press Ctrl-C';
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/* A command that breaks between words and after "=": no number is torn in two. A long one has the whole width. */
export function command(text, label) {
  const words = text.split(' ').flatMap((word, k) => [k > 0 && ' ', (word.match(/[^=]*=|[^=]+/g) ?? []).map((part) => h('span.word', null, part))]);
  return h(`div.command${text.length > 240 ? '.long' : ''}`, null, h('code', null, words), copyButton(text, label));
}

export function download(name, text, type = 'text/plain') {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = h('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/* One word of sh. */
export function shellWord(word) {
  return /^[A-Za-z0-9_.,:/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
