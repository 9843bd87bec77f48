// Find, replace and go to a line, in a bar over the script. Each line is searched for itself; replacing goes through the
// browser's own editing, so one undo takes it back.

import * as editor from './editor.js';
import { on } from './api.js';
import { h, $, announce, button, fill, many } from './dom.js';

const bar = $('find');
const settings = { regex: false, exact: false };
let places = [];
let now = -1;
let mode = 'find';
const word = h('input', { type: 'text', id: 'find-word', 'aria-label': 'Find', placeholder: 'find', autocomplete: 'off', spellcheck: 'false' });
const instead = h('input', { type: 'text', id: 'find-instead', 'aria-label': 'Replace with', placeholder: 'replace with', autocomplete: 'off', spellcheck: 'false' });
const line = h('input', { type: 'text', id: 'find-line', 'aria-label': 'Line', placeholder: 'line, or line:column', inputmode: 'numeric', autocomplete: 'off' });
const count = h('span', { class: 'soft count', role: 'status' });

/** Opens the bar: `find`, `replace` or `line`. */
export function open(which = 'find') {
  mode = which;
  bar.hidden = false;
  const chosen = editor.text().slice(editor.code.selectionStart, editor.code.selectionEnd);
  if (which === 'line') fill(bar, h('div', { class: 'row-head' }, line, button('Go', goToLine, 'small'), button('×', close, 'quiet icon', { 'aria-label': 'Close' })));
  else {
    if (chosen && !chosen.includes('\n')) word.value = chosen;
    fill(bar,
      h('div', { class: 'row-head' }, word, flag('Aa', 'exact', 'Capital letters count'), flag('.*', 'regex', 'A regular expression'), count,
        button('↑', () => walk(-1), 'quiet icon', { 'aria-label': 'Previous' }), button('↓', () => walk(1), 'quiet icon', { 'aria-label': 'Next' }), button('×', close, 'quiet icon', { 'aria-label': 'Close' })),
      which === 'replace' && h('div', { class: 'row-head' }, instead, button('Replace', replaceOne, 'small', { id: 'replace-one' }), button('All', replaceAll, 'small', { id: 'replace-all' })));
    search();
  }
  const first = which === 'line' ? line : word;
  first.focus();
  first.select();
}

function flag(text, name, label) {
  const one = button(text, () => { settings[name] = !settings[name]; one.setAttribute('aria-pressed', settings[name]); search(); }, 'quiet icon', { 'aria-label': label, title: label, 'aria-pressed': String(settings[name]) });
  return one;
}

export function close() {
  bar.hidden = true;
  places = [];
  editor.setFinder(null);
  editor.code.focus({ preventScroll: true });
}

/** The pattern, or null where there is none or it is not finished. */
function pattern() {
  if (!word.value) return null;
  const source = settings.regex ? word.value : word.value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  try { return new RegExp(source, settings.exact ? 'gu' : 'giu'); } catch { return null; }
}

function search(keep = false) {
  const wanted = pattern();
  word.toggleAttribute('aria-invalid', Boolean(word.value) && !wanted);
  places = [];
  if (wanted) editor.allLines().forEach((text, row) => {
    for (const found of text.matchAll(wanted)) {
      if (found[0] && places.length < 20_000) places.push({ row, from: found.index, to: found.index + found[0].length });
    }
  });
  const { line: row, column } = editor.at();
  const after = places.findIndex((place) => place.row > row || (place.row === row && place.to >= column));
  now = places.length ? Math.max(0, after) : -1;
  const rows = new Map();
  for (const place of places) rows.set(place.row, [...(rows.get(place.row) ?? []), place]);
  editor.setFinder(places.length ? (row) => (rows.get(row) ?? []).map((place) => ({ from: place.from, to: place.to, kind: place === places[now] ? 'found found-now' : 'found' })) : null);
  if (now >= 0 && !keep) editor.reveal(places[now].row);
  say();
}

function say() {
  count.textContent = places.length ? `${now + 1} of ${places.length}` : word.value ? 'none' : '';
}

function walk(step) {
  if (!places.length) return;
  now = (now + step + places.length) % places.length;
  const place = places[now];
  editor.goTo(place.row, place.from, { focus: false, length: place.to - place.from });
  say();
}

function replaceOne() {
  const place = places[now];
  const wanted = pattern();
  if (!place || !wanted) return;
  const text = editor.allLines()[place.row].slice(place.from, place.to);
  const from = editor.offsetOf(place.row, place.from);
  editor.insert(settings.regex ? text.replace(wanted, instead.value) : instead.value, from, from + text.length);
  instead.focus();
  search(true);
  walk(0);
}

function replaceAll() {
  const wanted = pattern();
  if (!wanted || !places.length) return;
  const by = settings.regex ? instead.value : () => instead.value;
  const total = places.length;
  const first = places[0].row;
  const last = places.at(-1).row;
  const lines = editor.allLines();
  const fresh = lines.slice(first, last + 1).map((text) => text.replace(wanted, by));
  editor.insert(fresh.join('\n'), editor.offsetOf(first, 0), editor.offsetOf(last, lines[last].length));
  instead.focus();
  search(true);
  announce(`${many(total, 'place')} replaced.`);
}

function goToLine() {
  const [row, column = '1'] = line.value.split(/[:,]/);
  const number = Number.parseInt(row, 10);
  if (!Number.isFinite(number)) return line.focus();
  close();
  editor.goTo(number - 1, Math.max(0, Number.parseInt(column, 10) - 1 || 0));
}

word.addEventListener('input', () => search());
bar.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') { event.preventDefault(); return close(); }
  if (event.key !== 'Enter' || event.target.tagName === 'BUTTON') return;
  event.preventDefault();
  if (mode === 'line') goToLine();
  else if (event.target === instead) replaceOne();
  else walk(event.shiftKey ? -1 : 1);
});
on('edited', () => { if (!bar.hidden && mode !== 'line') search(true); });
on('opened', () => { if (!bar.hidden && mode !== 'line') search(true); });
