// The editor's view: a textarea that does what textareas do (selection, undo, input methods, screen readers), and beneath it a
// layer that shows the same text in colour. The textarea is as tall as its text and the box around it scrolls, so the two
// never part; the layer holds only the lines in sight. What keys do is typing.js, files are file.js.

import { h, $, fill } from './dom.js';
import { tell } from './api.js';
import { tokenize, partner } from './rhai.js';

const box = $('editor');
const sheet = box.firstElementChild;
const [gutter, layer] = sheet.children;
export const code = $('code');
const here = h('div', { class: 'here' });
const rows = h('div', { class: 'rows' });
const numbers = h('div', { class: 'numbers' });
layer.append(here, rows); gutter.append(numbers);

/** Lines beyond the sight that are drawn too, so that scrolling finds them there. */
const SPARE = 24;

let lines = [''];
/** What is open at the start of each line; right up to `known`, and again from `dirty` to `trusted` where nothing changed since. */
let states = [''];
let known = 0;
let dirty = 0;
let trusted = 0;
let lineHeight = 20, drawn = { first: 0, last: 0 };
let problems = [];
let caret = { line: 0, column: 0, offset: 0 };
let brackets = [], finder = null, quiet = false, flash = -1, floor = '', inserting = null;

export const text = () => code.value;
export const allLines = () => lines;
export const at = () => caret;
/** Whether the text is what was last shown: undo goes back to there and not into what stood here before. */
export const untouched = () => code.value === floor;
export const stateBefore = (line) => { know(line); return states[line] ?? ''; };

// ── Text in and out ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Shows another text, from its top; or, with `stay`, a newer one of the same file at the same place. */
export function show(value, { stay = false, readOnly = false } = {}) {
  const kept = { start: code.selectionStart, end: code.selectionEnd, top: box.scrollTop, left: box.scrollLeft };
  code.readOnly = readOnly;
  left = null;
  quiet = true;
  if (code.value !== value) code.value = value;
  floor = value;
  changed();
  quiet = false;
  if (stay) {
    code.setSelectionRange(Math.min(kept.start, value.length), Math.min(kept.end, value.length));
    box.scrollTo(kept.left, kept.top);
  } else {
    code.setSelectionRange(0, 0);
    box.scrollTo(0, 0);
    brackets = [];
  }
  measure();
  moved();
  draw(true);
  learn();
}

/** Puts text in place of a range, so that the browser's own undo takes it back. */
export function insert(value, from = code.selectionStart, to = code.selectionEnd) {
  code.focus();
  code.setSelectionRange(from, to);
  // The browser puts in several lines one after the other and tells each; here they are one change.
  const batch = inserting = { event: null };
  const done = value === '' ? from === to || document.execCommand('delete') : document.execCommand('insertText', false, value);
  if (!done) {
    code.setRangeText(value, from, to, 'end');
    code.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertText' }));
  }
  inserting = null;
  if (batch.event) took(batch.event);
}

/** The offset of a line and a column, both from 0. */
export function offsetOf(line, column) {
  let offset = 0;
  for (let n = 0; n < line && n < lines.length; n += 1) offset += lines[n].length + 1;
  return Math.min(code.value.length, offset + Math.min(column, lines[line]?.length ?? 0));
}

export function positionOf(offset) {
  let left = offset;
  let line = 0;
  while (line < lines.length - 1 && left > lines[line].length) { left -= lines[line].length + 1; line += 1; }
  return { line, column: left, offset };
}

/** Columns of a diagnostic count characters; the textarea counts UTF-16. */
export function columnOf(line, characters) {
  let column = 0;
  for (const char of lines[line] ?? '') {
    if (characters <= 1) break;
    characters -= 1;
    column += char.length;
  }
  return column;
}

/** Puts the caret there (from 0) and brings it into sight; the line lights up for a moment. */
export function goTo(line, column = 0, { focus = true, length = 0 } = {}) {
  const row = Math.max(0, Math.min(line, lines.length - 1));
  const offset = offsetOf(row, column);
  if (focus) code.focus({ preventScroll: true });
  code.setSelectionRange(offset, offset + length);
  reveal(row);
  flash = row;
  setTimeout(() => { flash = -1; draw(true); }, 900);
  moved();
  draw(true);
}

export function reveal(line) {
  const top = line * lineHeight;
  if (top < box.scrollTop + lineHeight || top > box.scrollTop + box.clientHeight - 3 * lineHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
}

/** The place of a line and column in the sheet, in pixels, for what pops up there. */
export function placeOf(line, column) {
  const probe = h('span', { class: 'probe' }, (lines[line] ?? '').slice(0, column));
  layer.append(probe);
  const left = probe.getBoundingClientRect().width + gutter.offsetWidth + parseFloat(getComputedStyle(code).paddingLeft);
  probe.remove();
  return { left, top: line * lineHeight, bottom: (line + 1) * lineHeight, height: lineHeight };
}

export const sheetOf = () => sheet;
export const boxOf = () => box;

// ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Finds what changed between the text before and now; the rest keeps its states, and problems below move along. */
function changed() {
  const next = code.value.split('\n');
  const most = Math.min(lines.length, next.length);
  let head = 0;
  while (head < most && lines[head] === next[head]) head += 1;
  let tail = 0;
  while (tail < most - head && lines[lines.length - 1 - tail] === next[next.length - 1 - tail]) tail += 1;
  const removed = lines.length - head - tail;
  const added = next.length - head - tail;
  if (removed || added) {
    const shift = added - removed;
    states.splice(head + 1, removed, ...new Array(added).fill(null));
    if (known > head) {
      // What an earlier change left unlearnt stays so: it ends where that change ended.
      const unlearnt = trusted > known ? dirty + shift : 0;
      trusted = Math.max(known, trusted) + shift;
      dirty = Math.max(head + added, unlearnt);
      known = head;
    } else trusted = 0;
    for (const problem of problems) if (problem.row >= head + removed) problem.row += shift;
  }
  lines = next;
  size();
}

/** Makes the states right up to a line. It stops early where a line ends as it did before. */
function know(until, deadline = Infinity) {
  const end = Math.min(until, lines.length);
  while (known < end) {
    const { state } = tokenize(lines[known], states[known]);
    known += 1;
    if (known > dirty && known < trusted && states[known] === state) {
      known = Math.min(trusted, lines.length);
      trusted = 0;
      continue;
    }
    states[known] = state;
    if (known % 64 === 0 && performance.now() > deadline) return false;
  }
  return true;
}

let ahead;
/** The rest of a long text is learnt in small bites, so that a jump to its end costs nothing. */
function learn() {
  clearTimeout(ahead);
  ahead = setTimeout(() => { if (!know(lines.length, performance.now() + 6)) learn(); }, 60);
}

let widest = 0;
function size() {
  let most = 0;
  for (const line of lines) if (line.length > most) most = line.length;
  // In steps, for another width or height lays out the whole script anew; where that is soon done both are exact.
  const step = lines.length > 1000 ? 64 : 1;
  most = Math.ceil((most + 6) / step) * step;
  const tall = Math.ceil(lines.length / step) * step;
  const digits = Math.max(3, String(lines.length).length);
  const want = `${tall}/${most}/${digits}`;
  if (want === widest) return;
  widest = want;
  sheet.style.setProperty('--lines', tall);
  sheet.style.setProperty('--longest', most);
  sheet.style.setProperty('--digits', digits);
}

const measure = () => { lineHeight = parseFloat(getComputedStyle(code).lineHeight) || 20; };

code.addEventListener('input', (event) => { if (inserting) inserting.event = event; else took(event); });
function took(event) {
  changed();
  moved();
  draw(true);
  learn();
  if (!quiet) tell('edited', event);
}

// ── The layer ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Draws the lines in sight; without `all` only where the sight has left what is drawn. */
export function draw(all = false) {
  const top = Math.floor(box.scrollTop / lineHeight);
  const sight = Math.ceil(box.clientHeight / lineHeight) + 1;
  if (!all && top >= drawn.first && Math.min(lines.length, top + sight) <= drawn.last) return;
  const first = Math.max(0, top - SPARE);
  const last = Math.min(lines.length, top + sight + SPARE);
  know(last);
  const old = new Map();
  for (const row of rows.children) old.set(row.dataset.key, row);
  const numbered = new Map([...numbers.children].map((mark) => [mark.dataset.key, mark]));
  const fresh = [];
  const marks = [];
  for (let line = first; line < last; line += 1) {
    const ranges = marksOn(line);
    const key = `${line}\n${states[line]}\n${lines[line]}\n${ranges.map((range) => `${range.from},${range.to},${range.kind}`).join(';')}`;
    let row = old.get(key);
    if (!row) {
      row = rowOf(lines[line], states[line], ranges);
      row.dataset.key = key;
    }
    fresh.push(row);
    const found = problems.filter((problem) => problem.row === line);
    const worst = found.some((problem) => problem.severity === 'error') ? 'error' : found.length ? 'warning' : null;
    const said = found.map((problem) => problem.message).join('\n');
    const mark = `${line} ${line === caret.line} ${worst} ${said}`;
    marks.push(numbered.get(mark) ?? h('div', { class: line === caret.line ? 'number now' : 'number', data: { key: mark, ...(worst ? { mark: worst } : {}) }, title: said || null }, String(line + 1)));
  }
  exchange(rows, fresh);
  exchange(numbers, marks);
  const shift = `translateY(${first * lineHeight}px)`;
  rows.style.transform = shift;
  numbers.style.transform = shift;
  drawn = { first, last };
  here.style.transform = `translateY(${caret.line * lineHeight}px)`;
  here.dataset.flash = flash === caret.line ? 'on' : 'off';
  drawBubble();
}

/** Makes the children of `parent` these. What stays in its place is not touched, so that nothing is laid out anew for it. */
function exchange(parent, children) {
  const keep = new Set(children);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  let place = parent.firstElementChild;
  for (const child of children) {
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
}

function marksOn(line) {
  const ranges = [];
  for (const problem of problems) {
    if (problem.row !== line) continue;
    const from = problem.column > 0 ? columnOf(line, problem.column) : /\S|$/.exec(lines[line]).index;
    const word = problem.column > 0 ? /^[\w]+|^./.exec(lines[line].slice(from))?.[0].length ?? 1 : lines[line].length - from;
    ranges.push({ from, to: from + Math.max(1, word), kind: `problem-${problem.severity}` });
  }
  for (const bracket of brackets) if (bracket.line === line) ranges.push({ from: bracket.column, to: bracket.column + 1, kind: 'pair' });
  if (finder) ranges.push(...finder(line, lines[line]));
  return ranges;
}

/** A line as pieces of colour, cut again where a mark begins or ends. */
function rowOf(line, state, ranges) {
  const { pieces } = tokenize(line, state);
  const row = h('div', { class: 'row' });
  // A mark may stand behind the last character: what is missing is missing there.
  const end = Math.max(line.length, ...ranges.map((range) => range.to));
  const shown = line.padEnd(end);
  let from = 0;
  let piece = 0;
  while (from < end) {
    while (pieces[piece] !== undefined && pieces[piece] <= from) piece += 2;
    const kind = pieces[piece] === undefined ? '' : pieces[piece + 1];
    let to = pieces[piece] ?? end;
    for (const range of ranges) {
      if (range.from > from && range.from < to) to = range.from;
      if (range.to > from && range.to < to) to = range.to;
    }
    const classes = ranges.filter((range) => range.from <= from && range.to >= to).map((range) => range.kind);
    if (kind) classes.push(`t-${kind}`);
    row.append(classes.length ? h('span', { class: classes.join(' ') }, shown.slice(from, to)) : shown.slice(from, to));
    from = to;
  }
  if (!row.firstChild) row.append('\u200b');
  return row;
}

// ── The caret ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function moved() {
  const offset = code.selectionDirection === 'backward' ? code.selectionStart : code.selectionEnd;
  const before = caret;
  caret = positionOf(offset);
  brackets = [];
  if (code.selectionStart === code.selectionEnd) {
    const value = code.value;
    for (const near of [offset, offset - 1]) {
      const other = near >= 0 && near < value.length ? partner(value, near) : -1;
      if (other < 0) continue;
      brackets = [positionOf(near), positionOf(other)];
      break;
    }
  }
  return before.line !== caret.line || before.column !== caret.column;
}

// A dialog that closes gives the focus back, and some browsers the caret to the start of the text: it goes where it was.
let left = null;
code.addEventListener('blur', () => { left = [code.selectionStart, code.selectionEnd, code.selectionDirection]; });
code.addEventListener('pointerdown', () => { left = null; });
code.addEventListener('focus', () => { if (left && code.selectionStart === 0 && code.selectionEnd === 0) code.setSelectionRange(...left); });

let frame;
function soon(all) {
  if (frame) { frame.all ||= all; return; }
  frame = { all };
  requestAnimationFrame(() => { const { all: whole } = frame; frame = null; draw(whole); });
}

document.addEventListener('selectionchange', () => {
  if (document.activeElement === code && moved()) { soon(true); tell('caret', caret); }
});
for (const event of ['focus', 'pointerup', 'keyup']) code.addEventListener(event, () => { if (moved()) { soon(true); tell('caret', caret); } });
box.addEventListener('scroll', () => soon(false), { passive: true });
new ResizeObserver(() => { measure(); soon(true); }).observe(box);

// ── Problems and found places ───────────────────────────────────────────────────────────────────────────────────────────

/** The findings of the open file; `column` and `line` from 1, 0 for a whole. */
export function setProblems(list) {
  problems = list.filter((problem) => problem.line > 0).map((problem) => ({ ...problem, row: Math.min(problem.line, lines.length) - 1 }));
  draw(true);
}

export const problemsNow = () => problems;

/** A function of line number and text that gives the ranges found there, or null. */
export function setFinder(find) { finder = find; draw(true); }

/** The message of the caret's line, else of the first error: behind the text of its line, or under it where that leaves no room. */
function drawBubble() {
  const bubble = $('bubble');
  const problem = problems.find((one) => one.row === caret.line) ?? problems.find((one) => one.severity === 'error');
  if ((bubble.hidden = !problem)) return;
  const { row, column, message, severity } = problem;
  const key = `${row} ${column} ${message} ${lines[row]?.length} ${caret.line === row + 1} ${box.clientWidth}`;
  if (bubble.dataset.key === key) return;
  Object.assign(bubble.dataset, { key, severity });
  const put = (left, line, maxWidth) => Object.assign(bubble.style, { left: `${left}px`, top: `${line * lineHeight}px`, maxWidth });
  fill(bubble, h('span', {}, message));
  put(0, row, '72ch');
  const right = box.scrollLeft + box.clientWidth - 8;
  const behind = placeOf(row, lines[row]?.length).left + 16;
  if (bubble.offsetHeight <= lineHeight && behind + bubble.offsetWidth <= right) return put(behind, row, '72ch');
  const at = placeOf(row, column > 0 ? columnOf(row, column) : 0).left - 4;
  const above = caret.line === row + 1 && row > 0;
  // Where little room is right of the column the message begins further left; the line under the column shows the place.
  const left = Math.min(at, Math.max(gutter.offsetWidth, right - Math.max(320, bubble.offsetWidth)));
  if (left === at) bubble.prepend(h('span', { class: 'caret', 'aria-hidden': 'true' }, above ? '⌄' : '^'));
  put(left, above ? row - 1 : row + 1, `min(72ch, ${right - left}px)`);
}

// ── What keys do ────────────────────────────────────────────────────────────────────────────────────────────────────────

let keys = null;
/** What keys do and what completes comes when the script is first reached for. */
const wake = () => (keys ??= Promise.all([import('./typing.js'), import('./complete.js')]).then((modules) => { awake = true; return modules; }, () => { keys = null; return []; }));
let awake = false;
code.addEventListener('focus', wake, { once: true });
box.addEventListener('pointerenter', wake, { once: true });
code.addEventListener('keydown', (event) => {
  if (awake || event.defaultPrevented) return;
  const first = wake();
  // A key that the browser would take for something else waits for the few milliseconds until its meaning is here.
  if (event.key === 'Tab' || event.key === 'Enter') {
    event.preventDefault();
    first.then(([typing]) => typing?.key(new KeyboardEvent('keydown', { key: event.key, shiftKey: event.shiftKey, cancelable: true })));
  }
});

measure();
