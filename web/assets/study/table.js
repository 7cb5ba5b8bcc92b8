/* table.js - a table of any length: only visible rows are elements, and rows that scroll out are reused.
 * Arrow keys move a cursor, Enter opens its row; a click on a head sorts by it. */
import {fill, h, renew} from '../dom.js';

const ROW = 30, EXTRA = 8;

export class Table {
  /* columns: [{key, label, width, left, cell(i) -> text, node or a list of both}]; on: {open(i), sort(key)}; href(i): a row's address */
  constructor(el, {columns, href, rowClass, on, label}) {
    Object.assign(this, {columns, href, rowClass, on, rows: [], cursor: -1, sortKey: '', descending: false});
    this.head = h('div.grid-head', {role: 'row'});
    this.body = h('div.grid-body', {role: 'rowgroup'});
    this.grid = h('div.grid', {tabindex: '0', role: 'grid', 'aria-label': label, 'aria-readonly': 'true'}, this.head, this.body);
    fill(el, this.grid);
    this.live = new Map();
    this.grid.addEventListener('scroll', () => this.schedule(), {passive: true});
    this.grid.addEventListener('keydown', (event) => this.key(event));
    this.observer = new ResizeObserver(() => this.schedule());
    this.observer.observe(this.grid);
    this.setColumns(columns);
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  setColumns(columns) {
    this.columns = columns;
    this.drawHead();
    for (const row of this.live.values()) row.remove();
    this.live.clear();
    this.draw();
  }

  setSort(key, descending) {
    this.sortKey = key;
    this.descending = descending;
    this.drawHead();
  }

  drawHead() {
    renew(this.head, this.columns.map((c) => {
      const head = h('div', {role: 'columnheader', 'data-key': c.key, 'aria-sort': c.key === this.sortKey ? (this.descending ? 'descending' : 'ascending') : 'none'},
        h(`button${c.left ? '.left' : ''}`, {type: 'button', title: `sort by ${c.key}`, 'data-key': c.key, onclick: () => this.on.sort(c.key)}, c.label));
      head.style.width = `${c.width}px`;
      return head;
    }));
  }

  setRows(rows) {
    this.rows = rows;
    this.body.style.height = `${Math.max(1, rows.length) * ROW}px`;
    this.grid.setAttribute('aria-rowcount', rows.length + 1);
    this.cursor = Math.min(this.cursor, rows.length - 1);
    this.refresh();
  }

  /* Fills all visible rows again: other rows are visible, or their content has changed. */
  refresh() {
    this.draw(true);
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw(all = false) {
    const first = Math.max(0, Math.floor(this.grid.scrollTop / ROW) - EXTRA);
    const last = Math.min(this.rows.length, Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / ROW) + EXTRA);
    const free = [];
    for (const [k, row] of this.live) if (all || k < first || k >= last) { free.push(row); this.live.delete(k); }
    for (let k = first; k < last; k++) if (!this.live.has(k)) this.live.set(k, this.put(free.pop() ?? this.body.appendChild(this.row()), k));
    for (const row of free) row.remove();
  }

  row() {
    return h('div', {role: 'row'}, this.columns.map((c, at) => {
      const cell = h(`div.grid-cell${c.left ? '.left' : ''}`, {role: 'gridcell'}, at === 0 && h('a.row-link', {tabindex: '-1'}));
      cell.style.width = `${c.width}px`;
      return cell;
    }));
  }

  put(row, k) {
    const i = this.rows[k];
    row.className = `grid-row ${this.rowClass?.(i) || ''}${k === this.cursor ? ' now' : ''}`;
    const link = row.querySelector('.row-link'); /* lies over the whole row */
    link.setAttribute('href', this.href(i));
    row.setAttribute('aria-rowindex', k + 2);
    row.id = `row-${k}`;
    row.style.top = `${k * ROW}px`;
    this.columns.forEach((c, at) => {
      const cell = at === 0 ? link : row.childNodes[at], what = c.cell(i);
      if (Array.isArray(what)) fill(cell, what);
      else if (what instanceof Node) cell.replaceChildren(what);
      else if (cell.textContent !== String(what)) cell.textContent = what;
    });
    return row;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW) - 2);
    const to = {ArrowDown: this.cursor + 1, ArrowUp: this.cursor - 1, PageDown: this.cursor + page, PageUp: this.cursor - page, Home: 0, End: this.rows.length - 1}[event.key];
    if (event.key === 'Enter' && this.cursor >= 0 && event.target === this.grid) return void this.on.open(this.rows[this.cursor]);
    if (to === undefined || !this.rows.length || event.target !== this.grid) return;
    event.preventDefault();
    this.live.get(this.cursor)?.classList.remove('now');
    this.cursor = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.cursor * ROW, head = this.head.offsetHeight, room = this.grid.clientHeight - head;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top + ROW > this.grid.scrollTop + room) this.grid.scrollTop = top + ROW - room;
    this.draw();
    this.live.get(this.cursor)?.classList.add('now');
    this.grid.setAttribute('aria-activedescendant', `row-${this.cursor}`);
  }
}
