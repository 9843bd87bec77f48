// What keys do in the script: indentation, pairs of brackets, comments, whole lines. Every change goes through the browser's own
// editing, so its undo takes each of them back.

import * as editor from './editor.js';
import { announce, mod } from './dom.js';
import { tokenize } from './rhai.js';
import { on, tell } from './api.js';

const { code } = editor;
const UNIT = '    ';
const PAIRS = { '(': ')', '[': ']', '{': '}', '"': '"', '`': '`' };
/** After Escape, Tab leaves the script as it leaves any other field. */
let leaving = false;

export function key(event) {
  if (event.defaultPrevented || event.isComposing || code.readOnly) return;
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  const act = (work) => { event.preventDefault(); work(); };
  if (event.key === 'Escape') {
    // The topmost thing closes first; the second Escape is the one that lets Tab go.
    leaving = true;
    announce('Tab leaves the script now.');
    return;
  }
  if (event.key === 'Tab' && plain) {
    if (leaving) { leaving = false; return; }
    return act(() => indent(event.shiftKey ? -1 : 1));
  }
  if (event.key !== 'Shift') leaving = false;
  if (event.key === 'Enter' && plain && !event.shiftKey) return act(newLine);
  if (event.key === 'Backspace' && plain) return pairAway(event);
  if (mod(event) && event.key === '/') return act(comment);
  if (mod(event) && event.key === ']') return act(() => indent(1));
  if (mod(event) && event.key === '[') return act(() => indent(-1));
  if (mod(event) && event.shiftKey && event.key.toLowerCase() === 'k') return act(deleteLines);
  if (event.key === 'Home' && plain) return home(event);
  if (plain || event.altKey) bracket(event);
}

/** The lines that the selection touches, as first and last number. */
function touched() {
  const first = editor.positionOf(code.selectionStart).line;
  const end = editor.positionOf(code.selectionEnd);
  const last = end.column === 0 && end.line > first ? end.line - 1 : end.line;
  return [first, last];
}

/** Puts other lines in place of some, in one step of undo, and keeps the selection on what it was on. */
function replaceLines(first, last, fresh) {
  const lines = editor.allLines();
  const from = editor.offsetOf(first, 0);
  const to = editor.offsetOf(last, lines[last].length);
  const start = editor.positionOf(code.selectionStart);
  const end = editor.positionOf(code.selectionEnd);
  const moved = (place) => {
    if (place.line < first || place.line > last) return place;
    const by = fresh[place.line - first].length - lines[place.line].length;
    const indented = /^\s*/.exec(lines[place.line])[0].length;
    return { line: place.line, column: Math.max(0, place.column + (place.column >= Math.min(indented, place.column) ? by : 0)) };
  };
  const [a, b] = [moved(start), moved(end)];
  editor.insert(fresh.join('\n'), from, to);
  code.setSelectionRange(editor.offsetOf(a.line, a.column), editor.offsetOf(b.line, b.column));
}

function indent(direction) {
  const [first, last] = touched();
  const several = first !== last || code.selectionStart !== code.selectionEnd;
  if (direction > 0 && !several) {
    const { column } = editor.positionOf(code.selectionStart);
    return editor.insert(' '.repeat(UNIT.length - (column % UNIT.length)));
  }
  const fresh = editor.allLines().slice(first, last + 1).map((line) => {
    if (direction > 0) return line.trim() ? UNIT + line : line;
    return line.startsWith('\t') ? line.slice(1) : line.replace(/^ {1,4}/, '');
  });
  replaceLines(first, last, fresh);
}

function newLine() {
  const { line, column } = editor.positionOf(code.selectionStart);
  const text = editor.allLines()[line];
  const before = text.slice(0, column);
  const after = code.value[code.selectionEnd] ?? '';
  const lead = /^\s*/.exec(before)[0];
  const inside = editor.stateBefore(line);
  // A comment of documentation goes on, and so does a block comment.
  const doc = !/[cdstr]$/.test(inside) && /^\s*\/\/[/!](?!\/) ?/.exec(before);
  if (doc && before.trim().length > 3) return editor.insert(`\n${lead}${before.trim().slice(0, 3)} `);
  if (doc && code.selectionStart === code.selectionEnd && column === text.length) {
    return editor.insert('\n', editor.offsetOf(line, lead.length), editor.offsetOf(line, column));
  }
  const { state } = tokenize(before, inside);
  const isCode = !/[cdstr]$/.test(state);
  const open = isCode && /[{[(]\s*$/.test(before);
  if (open && after === PAIRS[before.trimEnd().at(-1)]) {
    editor.insert(`\n${lead}${UNIT}\n${lead}`);
    const at = code.selectionStart - lead.length - 1;
    code.setSelectionRange(at, at);
    return;
  }
  editor.insert(`\n${lead}${open ? UNIT : ''}`);
}

function bracket(event) {
  const char = event.key;
  if (char.length !== 1 || event.ctrlKey || event.metaKey) return;
  const { selectionStart: from, selectionEnd: to, value } = code;
  const close = PAIRS[char];
  if (from !== to && close) {
    event.preventDefault();
    editor.insert(char + value.slice(from, to) + close, from, to);
    code.setSelectionRange(from + 1, to + 1);
    return;
  }
  if (from !== to) return;
  // Typing the bracket that stands there steps over it.
  if (Object.values(PAIRS).includes(char) && value[from] === char && (char !== '"' && char !== '`' || inText(char))) {
    event.preventDefault();
    code.setSelectionRange(from + 1, from + 1);
    return;
  }
  if (char === '}' && /^[ \t]*$/.test(value.slice(value.lastIndexOf('\n', from - 1) + 1, from))) {
    // A closing brace alone on its line stands where its block began.
    const start = value.lastIndexOf('\n', from - 1) + 1;
    const lead = value.slice(start, from);
    if (lead.endsWith(UNIT) || lead.endsWith('\t')) {
      event.preventDefault();
      editor.insert(`${lead.endsWith('\t') ? lead.slice(0, -1) : lead.slice(0, -UNIT.length)}}`, start, from);
      return;
    }
  }
  if (!close || /\w/.test(value[from] ?? '') || inText()) return;
  if ((char === '"' || char === '`') && /[\w"`]/.test(value[from - 1] ?? '')) return;
  event.preventDefault();
  editor.insert(char + close);
  code.setSelectionRange(from + 1, from + 1);
}

/** Whether the caret is inside a text or a comment; with a quote, inside a text of that quote. */
function inText(quote) {
  const { line, column } = editor.positionOf(code.selectionStart);
  const before = editor.allLines()[line].slice(0, column);
  const { pieces, state } = tokenize(before, editor.stateBefore(line));
  if (quote === '`') return state.endsWith('t');
  if (/[cdtr]$/.test(state)) return !quote;
  // A text in double quotes is closed by the end of what was looked at, so one letter more is looked at.
  const kind = tokenize(`${before}x`, editor.stateBefore(line)).pieces.at(-1);
  if (quote) return kind === 'string' || (kind === 'escape' && pieces.length > 0);
  return kind === 'string' || kind === 'comment' || kind === 'doc' || kind === 'escape';
}

function pairAway(event) {
  const { selectionStart: from, selectionEnd: to, value } = code;
  if (from !== to || from === 0) return;
  if (PAIRS[value[from - 1]] && PAIRS[value[from - 1]] === value[from]) {
    event.preventDefault();
    return editor.insert('', from - 1, from + 1);
  }
  const start = value.lastIndexOf('\n', from - 1) + 1;
  const lead = value.slice(start, from);
  if (lead.length >= UNIT.length && /^ +$/.test(lead)) {
    event.preventDefault();
    editor.insert('', from - (lead.length % UNIT.length || UNIT.length), from);
  }
}

function comment() {
  const [first, last] = touched();
  const lines = editor.allLines().slice(first, last + 1);
  const full = lines.filter((line) => line.trim());
  const away = full.length > 0 && full.every((line) => /^\s*\/\/(?![/!])/.test(line));
  const depth = Math.min(...full.map((line) => /^\s*/.exec(line)[0].length));
  replaceLines(first, last, lines.map((line) => {
    if (!line.trim()) return line;
    return away ? line.replace(/^(\s*)\/\/ ?/, '$1') : `${line.slice(0, depth)}// ${line.slice(depth)}`;
  }));
}

function deleteLines() {
  const [first, last] = touched();
  const from = editor.offsetOf(first, 0);
  editor.insert('', from, Math.min(code.value.length, editor.offsetOf(last, Infinity) + 1));
}

/** Home goes to the first letter, and from there to the margin. */
function home(event) {
  const { line, column } = editor.positionOf(code.selectionDirection === 'backward' ? code.selectionStart : code.selectionEnd);
  const first = /\S|$/.exec(editor.allLines()[line]).index;
  const target = editor.offsetOf(line, column === first ? 0 : first);
  event.preventDefault();
  if (event.shiftKey) {
    const anchor = code.selectionDirection === 'backward' ? code.selectionEnd : code.selectionStart;
    code.setSelectionRange(Math.min(anchor, target), Math.max(anchor, target), target < anchor ? 'backward' : 'forward');
  } else code.setSelectionRange(target, target);
  tell('caret', editor.at());
}

code.addEventListener('keydown', key);
// The browser keeps one history for the box, whichever file stood in it: what was done to another is not undone in this one.
let undone = 0;
code.addEventListener('beforeinput', (event) => {
  if (event.inputType === 'historyUndo') { if (editor.untouched()) event.preventDefault(); else undone += 1; }
  else if (event.inputType === 'historyRedo') { if (undone > 0) undone -= 1; else event.preventDefault(); }
  else undone = 0;
});
on('opened', () => { undone = 0; });
code.addEventListener('blur', () => { leaving = false; });
