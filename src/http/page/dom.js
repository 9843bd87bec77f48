// Small helpers over the DOM, times and texts. Every string becomes a text node: what a tool says can never become markup.

/** An element. `props` are attributes; functions under `on…` are listeners, `data` a map of data attributes; false and null are left out. */
export function h(name, props, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key === 'value') element.value = value;
    else if (key === 'checked' || key === 'disabled' || key === 'readOnly') element[key] = Boolean(value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Puts these in place of what stood in the element. The focus stays at what took the place of what had it. */
export function fill(element, ...children) {
  const regain = holding(element);
  element.textContent = '';
  add(element, children);
  regain?.();
  return element;
}

const STOPS = 'a[href], button, input, select, textarea, summary, [tabindex]';
/** Where Tab stops within an element, in its order. */
export const stops = (element) => [...element.querySelectorAll(STOPS)].filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }));
/** What makes two controls the same for a person: their kind and what they are called. */
const likeness = (one) => [one.tagName, one.id.replace(/\d+/g, ''), one.getAttribute('href'), one.getAttribute('aria-label') ?? (one.tagName === 'BUTTON' ? one.textContent : '')].join('\n');

/** Where the focus is within `element`, as a function that gives it back after a new drawing: to its like, else to its neighbour. */
function holding(element) {
  const old = document.activeElement;
  if (old === element || !element.contains(old)) return null;
  const wanted = likeness(old);
  const place = stops(element).indexOf(old);
  return () => {
    if (old.isConnected) return;
    const now = stops(element);
    const near = now.filter((one) => likeness(one) === wanted).sort((a, b) => Math.abs(now.indexOf(a) - place) - Math.abs(now.indexOf(b) - place))[0];
    let next = near ?? now[Math.max(0, Math.min(place, now.length) - 1)];
    for (let up = element.parentElement; !next && up; up = up.parentElement) [next] = stops(up);
    next?.focus({ preventScroll: true });
  };
}

/** Makes the children of `parent` these, `[key, make]` each: one whose key was there stays as it is, with its focus. */
export function sync(parent, wanted) {
  const regain = holding(parent);
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const [key, make] of wanted) {
    let child = old.get(key);
    if (child) old.delete(key);
    else {
      child = make();
      child.dataset.key = key;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) {
    if (child === place) place = place.nextElementSibling;
    child.remove();
  }
  while (place) { const next = place.nextElementSibling; place.remove(); place = next; }
  regain?.();
}

/** The element with this id; the shell has it, so a missing one is a mistake of ours. */
export const $ = (id) => document.getElementById(id);

/** A button. `kind` is its classes: `primary`, `quiet`, `small`, `danger`. */
export const button = (text, onclick, kind = '', props = {}) =>
  h('button', { type: 'button', class: kind || null, onclick, ...props }, text);

/** A switch with words beside it. */
export function toggle(label, checked, onchange, props = {}) {
  const box = h('input', { type: 'checkbox', role: 'switch', checked, ...props });
  box.addEventListener('change', () => onchange?.(box.checked, box));
  return h('label', { class: 'switch' }, box, h('span', {}, label));
}

/** Says something to a screen reader. The same words twice are told twice. */
export function announce(text) {
  const live = $('live');
  live.textContent = '';
  setTimeout(() => { live.textContent = text; }, 30);
}

/** A note at the corner. It stays while the pointer or the focus is on it; failures stay longer. */
export function toast(text, { kind = 'note', action, run, stay = kind === 'bad' ? 20000 : 6000 } = {}) {
  const note = h('div', { class: 'toast', data: { kind } }, h('p', {}, text));
  let timer;
  let from = null;
  note.addEventListener('focusin', (event) => { if (!note.contains(event.relatedTarget)) from = event.relatedTarget; });
  const close = () => {
    clearTimeout(timer);
    // Who dismisses it by keys goes on where he was.
    if (note.contains(document.activeElement)) (from?.isConnected ? from : stops($('main'))[0])?.focus();
    note.remove();
  };
  if (action) note.append(button(action, () => { close(); run(); }, 'small'));
  note.append(button('×', close, 'quiet icon', { 'aria-label': 'Dismiss' }));
  note.close = close;
  const start = () => { timer = setTimeout(close, stay); };
  for (const event of ['pointerenter', 'focusin']) note.addEventListener(event, () => clearTimeout(timer));
  for (const event of ['pointerleave', 'focusout']) note.addEventListener(event, start);
  const all = $('toasts');
  all.append(note);
  while (all.children.length > 4) all.firstChild.close();
  start();
  announce(text);
  return close;
}

/** A failure as a person reads it: what happened, then what to do. */
export const failed = (error, doing) => toast(sentence(error, doing), { kind: 'bad' });

/** The same as one text. */
export function sentence(error, doing) {
  const what = doing ? `${doing}: ${error.message}` : error.message;
  return error.hint ? `${what}. ${capital(error.hint)}.` : `${what}.`;
}

/** The same as a block, for the place where the thing would have stood. */
export function trouble(error, retry) {
  return h('div', { class: 'trouble', role: 'alert' }, h('p', {}, capital(error.message) + '.'),
    error.hint && h('p', { class: 'soft' }, capital(error.hint) + '.'),
    retry && button('Try again', retry, 'small'));
}

/** One sentence and one action, where there is nothing yet. */
export const empty = (text, ...actions) => h('div', { class: 'empty' }, h('p', {}, text), ...actions);

/** A sentence begins with a capital; a command to type stays as it is typed. */
export const capital = (text) => (text && !/^lapidary /.test(text) ? text[0].toUpperCase() + text.slice(1) : text ?? '');

/** Runs `work` once things have been quiet for a while. */
export function calm(wait, work) {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), wait); };
}

/** A preference of this browser; a private window that refuses storage just forgets. */
export const pref = {
  get(key, or) { try { return JSON.parse(localStorage.getItem(`lapidary.${key}`)) ?? or; } catch { return or; } },
  set(key, value) { try { localStorage.setItem(`lapidary.${key}`, JSON.stringify(value)); } catch { /* forgotten */ } },
  drop(key) { try { localStorage.removeItem(`lapidary.${key}`); } catch { /* nothing kept */ } },
};

const two = (n) => String(n).padStart(2, '0');

/** The time of day, with the date where that is not today. */
export function when(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text ?? '';
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return time;
  const day = at.toLocaleDateString(undefined, { day: 'numeric', month: 'short', year: at.getFullYear() === now.getFullYear() ? undefined : 'numeric' });
  return `${day}, ${time}`;
}

export const took = (ms) => (ms < 10 ? `${Math.max(0, ms).toFixed(1).replace(/\.0$/, '')} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
export const size = (bytes) => (bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);
export const many = (n, one, more = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : more}`;
export const onMac = /Mac|iP(hone|ad)/.test(navigator.platform);
/** Ctrl, or the command key of a Mac. */
export const mod = (event) => (onMac ? event.metaKey : event.ctrlKey) && !event.altKey;

/**
 * Makes a separator movable, by pointer and by keys; a double click puts it back, and it remembers. `sign` is 1 where what it
 * measures lies before it, -1 where it lies behind; `apply(value)` uses a value within the bounds and gives the one it used.
 */
export function divide(edge, key, sign, apply, step = 16, scale = () => 1) {
  const [least, most, usually] = ['min', 'max', 'now'].map((word) => Number(edge.getAttribute(`aria-value${word}`)));
  const upright = edge.getAttribute('aria-orientation') === 'vertical';
  const place = (event) => (upright ? event.clientX : event.clientY);
  const set = (value, keep = true) => {
    const used = Math.round(apply(Math.round(Math.max(least, Math.min(most, value)))));
    edge.setAttribute('aria-valuenow', used);
    if (keep) pref.set(key, used);
  };
  const now = () => Number(edge.getAttribute('aria-valuenow'));
  set(pref.get(key, usually), false);
  edge.addEventListener('pointerdown', (down) => {
    down.preventDefault();
    edge.setPointerCapture(down.pointerId);
    const from = now();
    const drag = (move) => set(from + (place(move) - place(down)) * sign * scale());
    edge.addEventListener('pointermove', drag);
    edge.addEventListener('lostpointercapture', () => edge.removeEventListener('pointermove', drag), { once: true });
  });
  edge.addEventListener('dblclick', () => set(usually));
  edge.addEventListener('keydown', (event) => {
    const way = (upright ? { ArrowLeft: -1, ArrowRight: 1 } : { ArrowUp: -1, ArrowDown: 1 })[event.key];
    if (event.key === 'Home') set(least); else if (event.key === 'End') set(most);
    else if (way) set(now() + way * step * sign);
    else return;
    event.preventDefault();
  });
}

/** A unified diff with its signs in colour; the signs stay text, so it reads without colour too. Changed words stand out. */
export function diffView(text, label = 'difference') {
  const lines = text.replace(/\n$/, '').split('\n').filter((line) => !/^(---|\+\+\+) /.test(line) && !line.startsWith('\\'));
  const shown = lines.map((line) => [line]);
  for (let at = 0; at < lines.length; at += 1) {
    if (lines[at][0] !== '-') continue;
    let end = at;
    while (lines[end]?.[0] === '-') end += 1;
    let last = end;
    while (lines[last]?.[0] === '+') last += 1;
    // As many lines gone as come: each belongs to its fellow, and only the words between their common ends changed.
    if (last - end === end - at) for (let n = 0; n < end - at; n += 1) {
      const [old, fresh] = [lines[at + n].slice(1), lines[end + n].slice(1)];
      const [head, tail] = ends(old, fresh);
      if (head + tail < 3) continue;
      for (const [row, one] of [[at + n, old], [end + n, fresh]]) shown[row] = [lines[row][0] + one.slice(0, head), h('b', {}, one.slice(head, one.length - tail)), one.slice(one.length - tail)];
    }
    at = last - 1;
  }
  return h('pre', { class: 'diff', 'aria-label': label, tabindex: '0' }, lines.map((line, at) =>
    h('span', { class: line[0] === '+' ? 'plus' : line[0] === '-' ? 'minus' : line.startsWith('@@') ? 'hunk' : null }, shown[at])));
}

/** How many letters two lines share at their start and at their end, to whole words. */
function ends(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  while (head > 0 && /\w/.test(a[head - 1]) && (/\w/.test(a[head] ?? '') || /\w/.test(b[head] ?? ''))) head -= 1;
  const most = Math.min(a.length, b.length) - head;
  let tail = 0;
  while (tail < most && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  while (tail > 0 && /\w/.test(a[a.length - tail]) && (/\w/.test(a[a.length - tail - 1] ?? '') || /\w/.test(b[b.length - tail - 1] ?? ''))) tail -= 1;
  return [head, tail];
}

/** A stylesheet for what is only needed now and then. */
export const styles = (() => {
  const asked = new Map();
  return (name) => {
    if (!asked.has(name)) asked.set(name, new Promise((done) => {
      // One that does not come is asked for again when it is wanted again.
      const link = h('link', { rel: 'stylesheet', href: `/page/${name}`, onload: done, onerror: () => { asked.delete(name); link.remove(); done(); } });
      document.head.append(link);
    }));
    return asked.get(name);
  };
})();
