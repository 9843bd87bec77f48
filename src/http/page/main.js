// The shell: signing in, which view shows, the keys that work everywhere, and the bar that says when the host is gone.
// A view or a dialog that is not the Workshop comes by `import()` when it is first wanted.

import { store, on, get, post, refresh, follow, tryNow } from './api.js';
import { $, announce, failed, mod, onMac, pref, stops, styles } from './dom.js';
import * as workshop from './workshop.js';

const VIEWS = ['workshop', 'journal', 'settings'];
let view = 'workshop';

// ── Signing in ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function start() {
  theme(pref.get('theme', 'system'));
  for (const key of document.querySelectorAll('[data-keys]')) if (onMac) key.textContent = `⌘${key.dataset.keys}`;
  const code = /^#sign-in=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (code) {
    // The code leaves the address at once: it must not stand in the history, nor be copied with the address.
    history.replaceState(null, '', location.pathname);
    try {
      return await begin(await post('/api/session', { code }));
    } catch (error) {
      return signIn(error, true);
    }
  }
  try {
    await begin(await get('/api/session'));
  } catch (error) {
    if (error.status === 401 || error.status === 403) return signIn(error);
    gone({ online: false, seconds: 2 });
    setTimeout(start, 2000);
  }
}

/** With a session: everything is fetched, and the events are followed. */
export async function begin(session) {
  store.session = session;
  try { await refresh(); } catch (error) {
    if (error.status !== 401) { failed(error, 'the host could not say what it has'); setTimeout(() => begin(session), 3000); }
    return;
  }
  $('signin').hidden = true;
  document.body.dataset.signed = 'in';
  link();
  follow();
  await workshop.start();
  route();
}

async function signIn(error, byLink = false) {
  document.body.dataset.signed = 'out';
  for (const name of VIEWS) $(name).hidden = true;
  $('signin').hidden = false;
  await styles('more.css');
  (await import('./signin.js')).show($('signin'), { error, byLink, begin });
}

on('signed-out', (error) => signIn(error));

// ── Views ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Goes where the address says: `#/workshop/<plugin>/<tool>`, `#/journal/<call>`, `#/settings/<plugin>`. */
export async function route() {
  if (!store.session) return;
  if (location.hash && !location.hash.startsWith('#/')) return;
  const [name = 'workshop', ...rest] = location.hash.slice(2).split('/').filter(Boolean).map(decoded);
  const next = VIEWS.includes(name) ? name : 'workshop';
  const changed = next !== view;
  view = next;
  document.body.dataset.view = view;
  for (const other of VIEWS) $(other).hidden = other !== view;
  for (const link of document.querySelectorAll('[data-go]')) {
    if (link.dataset.go === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = view === 'workshop' ? 'Lapidary' : `${view === 'journal' ? 'Journal' : 'Settings'} · Lapidary`;
  if (view === 'workshop') await workshop.goTo(rest);
  else {
    await styles('more.css');
    const module = view === 'journal' ? await import('./journal.js') : await import('./plugins.js');
    await module.show($(view), rest);
  }
  land();
  if (changed) announce(view);
}

/** The focus is never lost: where it has no place in sight it goes to what one most likely wants of the view. */
function land() {
  const now = document.activeElement;
  if (!store.session || document.querySelector('dialog[open]') || (now !== document.body && now.checkVisibility())) return;
  const wished = view === 'workshop' ? ['#run', '#plugins [aria-current=true]', '#code'] : ['a[aria-current=true]', '#journal-list a'];
  const there = stops($(view));
  (wished.map((one) => there.find((stop) => stop.matches(one))).find(Boolean) ?? there[0])?.focus({ preventScroll: true });
}
// A dialog gives the focus back to what opened it; that may be gone meanwhile.
document.addEventListener('close', land, { capture: true });

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
window.addEventListener('hashchange', route);

/** Opens what stands in a module of its own: `open('palette')`. */
export const open = (name, ...given) => call(name, 'open', ...given);

/** Calls a function of such a module, or says that it cannot be had. */
export async function call(name, what, ...given) {
  try {
    await styles('more.css');
    return await (await import(`./${name}.js`))[what](...given);
  } catch (error) {
    failed(error instanceof TypeError ? { message: 'this part of the page could not be fetched', hint: 'try again when the host answers' } : error);
    if (!(error instanceof TypeError)) throw error;
  }
}

// ── Keys that work everywhere ───────────────────────────────────────────────────────────────────────────────────────────

const typing = (target) => target.matches?.('input:not([type=checkbox],[type=radio],[type=range]), textarea, select, [contenteditable]');

window.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || !store.session) return;
  const dialog = document.querySelector('dialog[open]');
  const key = event.key.toLowerCase();
  const run = (work) => { event.preventDefault(); work(); };
  if (mod(event) && !event.shiftKey && key === 'k') return run(() => { if (!dialog) open('palette'); });
  if (dialog) return;
  if (mod(event) && !event.shiftKey && key === 's') return run(() => workshop.save());
  if (mod(event) && key === 'enter') return run(() => workshop.run());
  if (mod(event) && !event.shiftKey && key === 'j') return run(() => workshop.toggleDrawer());
  if (event.key === 'F8') return run(() => workshop.nextProblem(event.shiftKey ? -1 : 1));
  if (event.altKey && !event.ctrlKey && !event.metaKey && (key === 'arrowup' || key === 'arrowdown')) return run(() => workshop.step(key === 'arrowup' ? -1 : 1));
  if (view === 'workshop' && mod(event) && (key === 'f' || key === 'h' || key === 'g') && $('script-col').contains(document.activeElement)) {
    return run(() => open('find', key === 'g' ? 'line' : key === 'h' ? 'replace' : 'find'));
  }
  if (event.key === '?' && !typing(event.target)) return run(() => open('help'));
  if (event.key === 'Escape') workshop.escape();
});

$('commands').addEventListener('click', () => open('palette'));
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); (stops($('main'))[0] ?? $('main')).focus(); });

// A file that is dragged in is looked at before anything happens to it.
let dragging = false;
window.addEventListener('dragover', (event) => {
  if (!store.session || ![...(event.dataTransfer?.types ?? [])].includes('Files')) return;
  event.preventDefault();
  if (!dragging) { dragging = true; document.body.dataset.drop = 'here'; }
});
window.addEventListener('dragleave', (event) => { if (!event.relatedTarget) undrop(); });
window.addEventListener('drop', (event) => {
  if (!dragging) return;
  event.preventDefault();
  undrop();
  open('install', event.dataTransfer.files[0]);
});
function undrop() { dragging = false; delete document.body.dataset.drop; }

// ── Whether the host is there ───────────────────────────────────────────────────────────────────────────────────────────

let counting;
function gone({ online, seconds }) {
  clearInterval(counting);
  link();
  const bar = $('gone');
  if (online) {
    if (!bar.hidden) announce('The host answers again.');
    bar.hidden = true;
    return land();
  }
  let left = Math.max(1, Math.round(seconds));
  const say = () => { $('gone-text').textContent = `The host does not answer. What you typed is kept here; trying again${left > 1 ? ` in ${left} s` : ''}.`; };
  say();
  bar.hidden = false;
  counting = setInterval(() => { left = Math.max(0, left - 1); say(); }, 1000);
}

function link() {
  $('link').dataset.state = store.online ? 'on' : 'off';
  $('link-text').textContent = store.online ? 'connected' : 'host gone';
}

on('online', gone);
$('gone-now').addEventListener('click', tryNow);

/** `light`, `dark`, or what the system says. */
export function theme(name) {
  if (name === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  pref.set('theme', name);
}

start();
