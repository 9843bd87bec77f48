// Completion and hover: the host's modules as it describes them itself, the language's functions and words, and the names of
// this file. It reads the text; what it puts in goes through the editor.

import * as editor from './editor.js';
import { on, get } from './api.js';
import { h, announce, calm, fill, styles } from './dom.js';
import { KEYWORDS, RESERVED, tokenize } from './rhai.js';

const { code } = editor;
const TAGS = ['param', 'local', 'endpoint', 'network', 'writes', 'spends', 'hidden', 'category', 'permission', 'fallback', 'timeout', 'returns', 'example'];
const MOST = 60;
let known = null;
let list = null;

// ── What there is ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** The host's documentation as maps by name; fetched once, and again after a failure. */
async function docs() {
  if (known) return known;
  const { modules, language } = await get('/api/docs');
  const made = { modules: new Map(), functions: new Map(), methods: new Map(), words: new Set([...KEYWORDS, ...(language?.keywords ?? []).filter((word) => !RESERVED.has(word))]) };
  const method = (one, owner) => { if (!made.methods.has(one.name)) made.methods.set(one.name, { ...one, owner }); };
  for (const module of modules) {
    made.modules.set(module.name, { ...module, functions: new Map(module.functions.map((one) => [one.name, one])) });
    for (const type of module.types) {
      for (const one of type.methods) method(one, type.name);
      for (const one of type.properties) method({ ...one, isProperty: true }, type.name);
    }
  }
  for (const one of language?.functions ?? []) {
    if (one.receiver) method({ ...one, isProperty: one.property }, one.receiver);
    else made.functions.set(one.name, one);
  }
  known = made;
  return made;
}

/** `name(a: type) → type`, one line for each overload. */
function signaturesOf(one, prefix = '') {
  const all = one.signatures ?? [];
  if (!all.length) return [one.signature ?? `${prefix}${one.name}`];
  return all.map((signature) => {
    const params = (signature.params ?? []).map((param) => (param.type && param.type !== 'any' ? `${param.name}: ${param.type}` : param.name)).join(', ');
    const call = one.isProperty ? one.name : `${one.name}(${params})`;
    return `${prefix}${call}${signature.returns && signature.returns !== '()' ? ` → ${signature.returns}` : ''}`;
  });
}

/** The names of this file: functions with their parameters and comments, constants, variables, imports. */
function ownNames() {
  const names = new Map();
  const text = editor.text();
  for (const found of text.matchAll(/\b(?:let|const)\s+([A-Za-z_]\w*)|\bas\s+([A-Za-z_]\w*)\s*;|\bfor\s+\(?([A-Za-z_]\w*)(?:\s*,\s*([A-Za-z_]\w*))?|\|([^|\n]{1,60})\|/g)) {
    const some = found[5] ? found[5].split(',').map((name) => name.trim()).filter((name) => /^[A-Za-z_]\w*$/.test(name)) : found.slice(1, 5).filter(Boolean);
    for (const name of some) if (!names.has(name)) names.set(name, { name, kind: found[2] ? 'module' : 'name', doc: '' });
  }
  for (const found of text.matchAll(/((?:^[ \t]*\/\/\/.*\n)*)^[ \t]*(?:private\s+)?fn\s+([A-Za-z_]\w*)\s*\(([^)]*)\)/gm)) {
    const params = found[3].split(',').map((name) => name.trim()).filter(Boolean);
    const doc = found[1].replace(/^[ \t]*\/\/\/ ?/gm, '').trim();
    names.set(found[2], { name: found[2], kind: 'function', own: true, doc, signatures: [{ params: params.map((name) => ({ name })), returns: '' }] });
    for (const param of params) if (!names.has(param)) names.set(param, { name: param, kind: 'name', doc: '' });
  }
  return names;
}

/** Where the caret is: what stands before it on the line, and whether that is code. */
function context() {
  const { line, column } = editor.at();
  const before = editor.allLines()[line].slice(0, column);
  const { pieces, state } = tokenize(`${before}x`, editor.stateBefore(line));
  const kind = pieces.at(-1) ?? '';
  const inText = /[cdstr]$/.test(state) || ['string', 'comment', 'doc', 'escape', 'tag', 'type'].includes(kind);
  const tag = /^\s*\/\/\/.*@(\w*)$/.exec(before);
  if (tag) return { line, column, tag: true, word: tag[1] };
  if (inText) return null;
  const found = /(?:([A-Za-z_]\w*)::|(\.))?([A-Za-z_]\w*)?$/.exec(before);
  // `0..n` is a range, not a method of nothing.
  const dot = found[2] && !/\.\.\w*$/.test(before) && !/\d\.\w*$/.test(before);
  return { line, column, module: found[1], dot, word: found[3] ?? '' };
}

async function itemsFor(where) {
  const all = await docs().catch(() => ({ modules: new Map(), functions: new Map(), methods: new Map(), words: KEYWORDS }));
  if (where.tag) return TAGS.map((name) => ({ name, kind: 'tag', doc: '' }));
  if (where.module) {
    const module = all.modules.get(where.module);
    return module ? [...module.functions.values()].map((one) => ({ ...one, kind: 'function', prefix: `${where.module}::` })) : [];
  }
  if (where.dot) return [...all.methods.values()].map((one) => ({ ...one, kind: one.isProperty ? 'property' : 'method' }));
  const names = ownNames();
  return [
    ...[...names.values()],
    ...[...all.modules.values()].map((one) => ({ name: one.name, kind: 'module', doc: one.doc })),
    ...[...all.words].map((name) => ({ name, kind: 'word', doc: '' })),
    ...[...all.functions.values()].filter((one) => !names.has(one.name) && /^[a-z_]/.test(one.name)).map((one) => ({ ...one, kind: 'function' })),
  ];
}

/** Those that fit, the best first: what begins with the word, then what holds its letters in order. */
export function ranked(items, word) {
  const wanted = word.toLowerCase();
  const scored = [];
  for (const item of items) {
    const name = item.name.toLowerCase();
    let score = -1;
    if (item.name.startsWith(word)) score = 0;
    else if (name.startsWith(wanted)) score = 1;
    else if (name.includes(wanted)) score = 2;
    else {
      let at = 0;
      for (const char of name) if (char === wanted[at]) at += 1;
      if (wanted.length > 1 && at === wanted.length) score = 3;
    }
    if (score >= 0 && item.name !== '') scored.push([score, item]);
  }
  scored.sort((a, b) => a[0] - b[0] || (a[1].own ? -1 : 0) - (b[1].own ? -1 : 0) || (a[1].name < b[1].name ? -1 : 1));
  return scored.slice(0, MOST).map(([, item]) => item);
}

// ── The list ────────────────────────────────────────────────────────────────────────────────────────────────────────────

let asked = 0;
async function complete(explicit) {
  asked += 1;
  const mine = asked;
  const where = context();
  if (!where || (!explicit && !where.word && !where.module && !where.tag && !where.dot)) return close();
  await styles('more.css');
  const items = ranked(await itemsFor(where), where.word);
  if (mine !== asked || document.activeElement !== code) return;
  // A word that is all there needs no help.
  if (!items.length || (!explicit && items.length === 1 && items[0].name === where.word)) return close();
  show(items, where, explicit);
}

function show(items, where, explicit) {
  const shown = list?.element ?? h('div', { class: 'complete', id: 'complete' }, h('ul', { role: 'listbox', id: 'complete-list', 'aria-label': 'Completions' }), h('div', { class: 'about' }));
  if (!list) editor.sheetOf().append(shown);
  list = { element: shown, items, where, now: 0, explicit };
  const place = editor.placeOf(where.line, where.column - where.word.length);
  const box = editor.boxOf();
  shown.style.left = `${Math.max(0, Math.min(place.left - 8, box.scrollLeft + box.clientWidth - 300))}px`;
  const below = place.bottom + 220 < box.scrollTop + box.clientHeight || place.top - box.scrollTop < 220;
  shown.classList.toggle('above', !below);
  shown.style.top = below ? `${place.bottom}px` : `${place.top}px`;
  fill(shown.firstChild, items.map((item, index) => h('li', { role: 'option', id: `complete-${index}`, 'aria-selected': 'false', data: { kind: item.kind },
    onpointerdown: (event) => { event.preventDefault(); list.now = index; accept(); } },
  h('span', { class: 'name' }, item.name), h('span', { class: 'kind' }, item.kind))));
  code.setAttribute('aria-controls', 'complete-list');
  code.setAttribute('aria-autocomplete', 'list');
  point(0, !explicit);
}

function point(index, quiet) {
  list.now = (index + list.items.length) % list.items.length;
  const item = list.items[list.now];
  for (const [at, option] of [...list.element.firstChild.children].entries()) option.setAttribute('aria-selected', at === list.now);
  const [box, option] = [list.element.firstChild, list.element.firstChild.children[list.now]];
  // Within the list only: the script behind it must not scroll along.
  box.scrollTop = Math.max(option.offsetTop + option.offsetHeight - box.clientHeight, Math.min(box.scrollTop, option.offsetTop));
  code.setAttribute('aria-activedescendant', `complete-${list.now}`);
  const about = list.element.lastChild;
  const doc = firstSentence(item.doc);
  fill(about, (item.signatures?.length || item.signature) && h('code', {}, signaturesOf(item, item.prefix)[0]), doc && h('p', {}, doc));
  about.hidden = !about.firstChild;
  if (!quiet) announce(`${item.name}, ${item.kind}. ${doc}`);
}

const firstSentence = (doc) => (/^.*?[.!?](?=\s|$)/s.exec(doc ?? '')?.[0] ?? doc ?? '').replace(/\s+/g, ' ');

function close() {
  if (!list) return false;
  list.element.remove();
  list = null;
  for (const name of ['aria-controls', 'aria-autocomplete', 'aria-activedescendant']) code.removeAttribute(name);
  return true;
}

function accept() {
  const { items, now, where } = list;
  const item = items[now];
  close();
  asked += 1;
  const { offset } = editor.at();
  const calls = (item.kind === 'function' || item.kind === 'method') && code.value[offset] !== '(';
  const path = item.kind === 'module' && code.value.slice(offset, offset + 2) !== '::';
  const takes = (item.signatures ?? []).some((one) => one.params?.length) || !item.signatures?.length;
  editor.insert(`${item.name}${calls ? '()' : path ? '::' : ''}`, offset - where.word.length, offset);
  if (calls && takes) code.setSelectionRange(code.selectionStart - 1, code.selectionStart - 1);
  if (path) complete(false);
}

code.addEventListener('keydown', (event) => {
  const act = (work) => { event.preventDefault(); event.stopImmediatePropagation(); work(); };
  if (event.ctrlKey && event.key === ' ') return act(() => complete(true));
  if (about && event.key === 'Escape') return act(hush);
  if (!list || event.isComposing) return;
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (step && !event.altKey && !event.ctrlKey) return act(() => point(Math.abs(step) === 1 ? list.now + step : Math.max(0, Math.min(list.items.length - 1, list.now + step))));
  if (event.key === 'Escape') return act(close);
  if (event.key === 'Tab' && !event.shiftKey) return act(accept);
  // Enter after a whole name breaks the line, as one expects who did not look at the list.
  if (event.key === 'Enter' && !event.shiftKey) { if (list.items[list.now].name === list.where.word) close(); else act(accept); }
}, { capture: true });

on('edited', (event) => {
  hush();
  if (event?.inputType === 'insertText' && /^[\w:.@]$/.test(event.data ?? '')) {
    if (event.data === ':' && code.value.slice(editor.at().offset - 2, editor.at().offset) !== '::') return close();
    return complete(false);
  }
  if (list && event?.inputType === 'deleteContentBackward' && list.where.word) return complete(list.explicit);
  close();
});
on('caret', (caret) => {
  if (list && (caret.line !== list.where.line || caret.column < list.where.column - list.where.word.length || caret.column > list.where.column + 1)) close();
  if (about && caret.offset !== about.offset) hush();
  sayLater();
});
code.addEventListener('blur', () => { close(); hush(); });

// ── What a name means ───────────────────────────────────────────────────────────────────────────────────────────────────

let about = null;
/** Where the pointer was, for what it brought up; what keys brought up stays until a key or the caret goes on. */
let over = null;

/** What is known of the name at a place: `{lines, doc}` or null. */
async function meaning(line, column) {
  const text = editor.allLines()[line] ?? '';
  const before = /[A-Za-z_]?\w*$/.exec(text.slice(0, column))[0];
  const word = before + /^\w*/.exec(text.slice(column))[0];
  if (!/^[A-Za-z_]\w*$/.test(word)) return null;
  const from = column - before.length;
  const kind = tokenize(text.slice(0, from + word.length), editor.stateBefore(line)).pieces.at(-1);
  if (['string', 'comment', 'doc', 'escape'].includes(kind)) return null;
  const all = await docs().catch(() => null);
  if (!all) return null;
  const module = /([A-Za-z_]\w*)::$/.exec(text.slice(0, from))?.[1];
  if (module) {
    const one = all.modules.get(module)?.functions.get(word);
    return one ? { from, lines: signaturesOf(one, `${module}::`), doc: one.doc } : null;
  }
  if (text[from - 1] === '.' && text[from - 2] !== '.') {
    const one = all.methods.get(word);
    return one ? { from, lines: signaturesOf(one, `${one.owner}.`), doc: one.doc } : null;
  }
  if (all.modules.has(word) && text.slice(from + word.length).startsWith('::')) return { from, lines: [word], doc: all.modules.get(word).doc };
  const own = ownNames().get(word);
  if (own?.signatures) return { from, lines: signaturesOf(own), doc: own.doc };
  const one = all.functions.get(word);
  return one && !own ? { from, lines: signaturesOf(one), doc: one.doc } : null;
}

/** Shows what the name at the caret means. */
export async function explain() {
  const { line, column, offset } = editor.at();
  const found = await meaning(line, column);
  if (!found) return announce('Nothing is known of this name.');
  code.focus();
  await popUp(found, line, offset);
  announce(`${found.lines.join('; ')}. ${firstSentence(found.doc)}`);
}

async function popUp(found, line, offset) {
  hush();
  await styles('more.css');
  const place = editor.placeOf(line, found.from);
  const box = editor.boxOf();
  const above = place.top - box.scrollTop > 200;
  const element = h('div', { class: above ? 'hover above' : 'hover', id: 'hover', role: 'tooltip' }, h('pre', {}, found.lines.join('\n')), prose(found.doc));
  element.style.left = `${Math.max(0, Math.min(place.left, box.scrollLeft + box.clientWidth - 440))}px`;
  element.style.top = `${above ? place.top : place.bottom}px`;
  editor.sheetOf().append(element);
  about = { element, offset };
}

function hush() {
  about?.element.remove();
  about = null;
  over = null;
}

/** Text with `code` and fenced examples, as the reference has them. */
function prose(doc) {
  return (doc ?? '').split(/^```\w*\n([\s\S]*?)^```$/m).map((part, index) => {
    if (index % 2) return h('pre', { class: 'example' }, part.trimEnd());
    return part.split(/\n{2,}/).filter((text) => text.trim()).map((text) => h('p', {}, text.trim().split('`').map((piece, at) => (at % 2 ? h('code', {}, piece) : piece))));
  });
}

let still;
code.addEventListener('mousemove', (event) => {
  clearTimeout(still);
  const { clientX, clientY } = event;
  if (about && over && Math.hypot(clientX - over.x, clientY - over.y) > 24) hush();
  still = setTimeout(async () => {
    if (list || about) return;
    const sheet = code.getBoundingClientRect();
    const style = getComputedStyle(code);
    const line = Math.floor((clientY - sheet.top) / parseFloat(style.lineHeight));
    const text = editor.allLines()[line];
    if (!text) return;
    const per = (editor.placeOf(line, text.length).left - editor.placeOf(line, 0).left) / text.length;
    const column = Math.floor((clientX - sheet.left - parseFloat(style.paddingLeft)) / per);
    const found = column < text.length && await meaning(line, column);
    if (!found) return;
    await popUp(found, line, editor.at().offset);
    over = { x: clientX, y: clientY };
  }, 450);
});
code.addEventListener('mouseleave', () => { clearTimeout(still); if (over) hush(); });

/** After a pause on a known name its signature is told to who does not see the page. */
const sayLater = calm(1200, async () => {
  if (document.activeElement !== code || list || about) return;
  const { line, column } = editor.at();
  const found = await meaning(line, column);
  if (found && editor.at().line === line && editor.at().column === column) announce(found.lines[0]);
});
