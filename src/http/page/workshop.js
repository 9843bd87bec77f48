// The Workshop: the list at the left, which plugin, tool and file are looked at, the columns and the drawer's place.
// The editor draws the text, run.js the right column; saving and conflicts are file.js.

import { store, on, tell, get, post, at, query, chipOf, pluginOf, toolsOf } from './api.js';
import { h, $, announce, button, calm, divide, empty, fill, failed, pref, sync, toast } from './dom.js';
import * as editor from './editor.js';
import * as runs from './run.js';
import { call, open, route } from './main.js';

const GROUPS = [['tool file', 'user/tools'], ['plugin folder', 'user/plugins'], ['shipped', 'scripts'], ['extra', 'elsewhere']];

// ── The status chip ─────────────────────────────────────────────────────────────────────────────────────────────────────

export function chip(status, short = false) {
  const { state, short: brief, long } = chipOf(status);
  return h('span', { class: 'chip', data: { state }, title: short ? long : status.status, 'aria-label': short ? long : null, role: short ? 'img' : null }, short ? brief : long);
}

// ── The list ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const wanted = { text: '', show: 'all' };

function fits(status) {
  if (wanted.show === 'mine' && status.origin === 'shipped') return false;
  if (wanted.show === 'off' && status.enabled) return false;
  if (wanted.show === 'look' && !['look', 'bad', 'held'].includes(chipOf(status).state)) return false;
  const text = wanted.text.trim().toLowerCase();
  return !text || [status.name, ...status.tools].some((name) => name.toLowerCase().includes(text));
}

/** The plugins as they stand in the list, group after group. */
const inOrder = () => GROUPS.flatMap(([origin]) => store.plugins.filter((status) => status.origin === origin && fits(status)));

function drawList() {
  const nav = $('plugins');
  const rows = [];
  for (const [origin, words] of GROUPS) {
    const members = store.plugins.filter((status) => status.origin === origin && fits(status));
    if (!members.length && !(origin === 'tool file' && wanted.show === 'all' && !wanted.text)) continue;
    rows.push([`# ${origin}`, () => h('h2', {}, words)]);
    if (!members.length) rows.push(['# none', () => empty('No tools of your own yet.', button('New tool', () => open('new'), 'small'))]);
    for (const status of members) {
      const chosen = status.name === store.plugin;
      const { state, long } = chipOf(status);
      const emoji = toolsOf(status.name)[0]?.emoji ?? '';
      rows.push([`${status.name} ${state} ${long} ${chosen} ${emoji}`, () => h('a', {
        class: 'item', href: `#/workshop/${encodeURIComponent(status.name)}`, 'aria-current': chosen ? 'true' : null, data: { plugin: status.name },
      }, h('span', { class: 'emoji', 'aria-hidden': 'true' }, emoji || '·'), h('span', { class: 'name' }, status.name), chip(status, true))]);
      const tools = chosen ? toolsOf(status.name) : [];
      if (tools.length > 1) for (const tool of tools) {
        const now = tool.name === store.tool;
        rows.push([`${status.name}/${tool.name} ${now} ${tool.offered}`, () => h('a', {
          class: 'item sub', href: `#/workshop/${encodeURIComponent(status.name)}/${encodeURIComponent(tool.name)}`, 'aria-current': now ? 'true' : null, data: { tool: tool.name },
        }, h('span', { class: 'name' }, tool.name), !tool.offered && h('span', { class: 'soft' }, tool.hidden ? 'hidden' : 'off'))]);
      }
    }
  }
  if (wanted.show !== 'off' && !wanted.text) for (const [index, notice] of store.notices.entries()) {
    if (!index) rows.push(['# notices', () => h('h2', {}, 'to look at')]);
    rows.push([`# ${notice.subject} ${notice.message}`, () => h('p', { class: 'notice' }, h('strong', {}, notice.subject), ` ${notice.message}`)]);
  }
  if (!rows.some(([key]) => !key.startsWith('#')) && (wanted.text || wanted.show !== 'all')) {
    rows.push(['# nothing', () => empty('Nothing fits the filter.', button('Show all', () => { wanted.text = ''; wanted.show = 'all'; $('list-filter').value = ''; $('list-show').value = 'all'; drawList(); }, 'small'))]);
  }
  sync(nav, rows);
}

$('list-filter').addEventListener('input', (event) => { wanted.text = event.target.value; drawList(); });
// Down from the filter goes into the list; in it the arrows walk, as Tab does.
$('list-col').addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.altKey || event.target.tagName === 'SELECT') return;
  const items = [...$('plugins').querySelectorAll('a')];
  const next = items[items.indexOf(document.activeElement) + step] ?? (step < 0 ? $('list-filter') : null);
  if (next) { event.preventDefault(); next.focus(); }
});
$('list-filter').addEventListener('keydown', (event) => { if (event.key === 'Enter') $('plugins').querySelector('a')?.click(); });
$('list-show').addEventListener('change', (event) => { wanted.show = event.target.value; drawList(); });
$('new-tool').addEventListener('click', () => open('new'));
$('install').addEventListener('click', () => $('install-file').click());
$('install-file').addEventListener('change', ({ target }) => { if (target.files[0]) open('install', target.files[0]); target.value = ''; });

// ── What is looked at ───────────────────────────────────────────────────────────────────────────────────────────────────

export async function start() {
  drawList();
  runs.start($('run-col'));
}

/** Goes to a plugin and perhaps one of its tools; without, to where one was before, or to the first that is good to try. */
export async function goTo([plugin, tool]) {
  const kept = pref.get('at', []);
  const name = plugin ?? (pluginOf(kept[0]) ? kept[0] : (pluginOf('dice') ?? inOrder()[0])?.name);
  if (!name) return nothing();
  await select(name, tool ?? (name === kept[0] ? kept[1] : undefined), { remember: !plugin });
}

function nothing() {
  fill($('run-col'), empty('No plugin is here yet.', button('Make a tool', () => open('new'), 'primary'), button('Install a file', () => open('install'))));
}

/** Shows a plugin of the Workshop from wherever one is, perhaps at a place in its text. */
export async function visit(plugin, tool, place) {
  history.pushState(null, '', `#/workshop/${encodeURIComponent(plugin)}${tool ? `/${encodeURIComponent(tool)}` : ''}`);
  going = place;
  await route();
}
let going;

export async function select(name, tool, { remember = true, place } = {}) {
  const status = pluginOf(name);
  const tools = toolsOf(name);
  const chosen = (tools.find((one) => one.name === tool) ?? tools[0])?.name ?? null;
  const other = name !== store.plugin;
  store.plugin = name;
  store.tool = chosen;
  if (status) pref.set('at', [name, chosen]);
  const hash = `#/workshop/${encodeURIComponent(name)}${chosen && tools.length > 1 ? `/${encodeURIComponent(chosen)}` : ''}`;
  if (remember && location.hash !== hash) history.replaceState(null, '', hash);
  drawList();
  tell('selected');
  if (other) $('plugins').querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  if (!status) return gone(name);
  place ??= going;
  going = undefined;
  await openFile(name, place?.path ?? (other ? undefined : store.open?.path), { place, fresh: other, tool: chosen });
}

function gone(name) {
  leave();
  store.open = null;
  editor.show('', { readOnly: true });
  head();
  strip(`There is no plugin ${name} here any more.`, ['Show the others', () => { location.hash = '#/workshop'; }]);
}

let opening = 0;

/** Opens a file of a plugin; without a path the one where its tool is. `place` is a line and column from 1 to go to. */
export async function openFile(plugin, path, { place, fresh = true, tool } = {}) {
  if (!fresh && store.open?.plugin === plugin && (!path || path === store.open.path)) {
    const better = tool && fileOfTool(store.open.files, tool);
    if (!better || better === store.open.path || place) { if (place) jump(place); return; }
    path = better;
  }
  opening += 1;
  const mine = opening;
  const status = pluginOf(plugin);
  strip(null);
  try {
    const single = status?.path.endsWith('.rhai');
    const { files } = single ? { files: [] } : await get(at('plugins', plugin, 'files'));
    const wish = path ?? (single ? undefined : fileOfTool(files, tool) ?? broken(status, files) ?? usual(files));
    const source = await get(`${at('plugins', plugin, 'source')}${query({ path: wish })}`);
    if (mine !== opening) return;
    leave();
    store.open = { plugin, ...source, files };
  } catch (error) {
    if (mine !== opening) return;
    leave();
    store.open = null;
    editor.show('', { readOnly: true });
    head();
    strip(error.message, ['Try again', () => openFile(plugin, path, { place })]);
    return;
  }
  editor.show(store.open.text);
  head();
  showProblems();
  if (pref.get(draftKey(), null)) await (await import('./file.js')).offerDraft();
  notice();
  if (place) jump(place);
  tell('opened');
}

const stem = (path) => path.split('/').pop().replace(/\.\w+$/, '');
function fileOfTool(files, tool) {
  const module = store.tools.find((one) => one.name === tool)?.module;
  const scripts = (files ?? []).filter((file) => file.path.endsWith('.rhai'));
  // A toolset's word for the file: its stem, behind the plugin's name where that is a folder.
  return scripts.find((file) => module && file.path.startsWith('tools/') && (module === stem(file.path) || module.endsWith(`_${stem(file.path)}`)))?.path;
}
const broken = (status, files) => files.find((file) => status?.diagnostics.some((one) => one.file.endsWith(`/${file.path}`)))?.path;
const usual = (files) => (files.find((file) => file.path.startsWith('tools/') && file.path.endsWith('.rhai')) ?? files.find((file) => file.path.endsWith('.rhai')) ?? files[0])?.path;

const jump = (place) => editor.goTo(Math.max(0, place.line - 1), place.column > 0 ? editor.columnOf(place.line - 1, place.column) : 0);

export const draftKey = (open = store.open) => `draft.${open?.plugin}/${open?.path}`;
export const isDirty = () => Boolean(store.open) && editor.text() !== store.open.text;

/** Goes to where a finding points, whichever file that is. */
export async function goToFinding(finding, plugin = store.plugin) {
  const status = pluginOf(plugin);
  const path = status && finding.file.startsWith(`${status.path}/`) ? finding.file.slice(status.path.length + 1) : undefined;
  if (document.body.dataset.view === 'workshop' && plugin === store.plugin) await openFile(plugin, path, { place: finding, fresh: false });
  else await visit(plugin, undefined, { ...finding, path });
  pane('script');
}

// ── The head of the script ──────────────────────────────────────────────────────────────────────────────────────────────

function head() {
  const { open } = store;
  const several = open?.files?.length > 1;
  $('file-one').textContent = open ? (several ? '' : open.path) : '';
  const choice = $('file-select');
  choice.hidden = !several;
  if (several) {
    fill(choice, open.files.map((file) => h('option', { value: file.path }, `${open.plugin}/${file.path}`)));
    choice.value = open.path;
  }
  dirtyMark();
  showChip();
}

$('file-select').addEventListener('change', (event) => openFile(store.plugin, event.target.value));

function showChip() {
  const status = pluginOf(store.plugin);
  const { state, long } = status ? chipOf(status) : { state: 'none', long: '' };
  const shown = $('chip');
  shown.dataset.state = state;
  shown.textContent = long;
  shown.title = status?.status ?? '';
}

function dirtyMark() {
  const dirty = isDirty();
  $('dirty').hidden = !dirty;
  if (!dirty && $('save').matches(':focus-visible')) editor.code.focus({ preventScroll: true });
  $('save').disabled = !dirty;
  document.title = dirty ? `● ${store.open.path} · Lapidary` : 'Lapidary';
}

/** A bar at the foot of the text: what is the matter, and buttons `[words, work]`. Null takes it away. */
export function strip(text, ...buttons) {
  const bar = $('strip');
  bar.hidden = !text;
  fill(bar, text && h('p', {}, text), buttons.map(([words, work], index) => button(words, work, index ? 'small quiet' : 'small')));
}

/** What there is to say of the open plugin, unless something more pressing is said. */
export function notice() {
  if (!$('strip').hidden && $('strip').dataset.pressing === 'yes') return;
  const status = pluginOf(store.plugin);
  if (!status || !store.open) return;
  if (!status.enabled) return strip(`${status.name} is switched off.`, ['Switch it on', () => act(status.name, 'enable')]);
  if (status.waiting) return strip('Held: this version asks for more than it may.', ['See what', () => drawer('permissions')]);
  if (!store.open.editable && isDirty()) return strip('This one comes with Lapidary. Saving makes a copy of your own, which takes its place.', ['Save a copy', () => save()]);
  strip(null);
}

/** `enable`, `disable`, `reload`: the answer is the plugin's new status. */
export async function act(plugin, what) {
  try {
    await post(at('plugins', plugin, what));
    tell('acted', { plugin, what });
  } catch (error) { failed(error); }
}

// Unsaved text is kept here, not in file.js: it must be kept too where the host went away before that was fetched.
/** Tells this page's drafts from those of another tab. */
export const page = Math.random().toString(36).slice(2);
const keepSoon = calm(250, keepDraft);
function keepDraft(file, key) {
  if (store.open !== file) return;
  if (isDirty()) pref.set(key, { text: editor.text(), base: file.version, at: new Date().toISOString(), page });
  else pref.drop(key);
}
// A file that is left within the quarter second still keeps what was typed.
const leave = () => { if (store.open && isDirty()) keepDraft(store.open, draftKey()); };
window.addEventListener('pagehide', leave);

const checkSoon = calm(450, () => import('./file.js').then((file) => file.check(), () => {}));
on('edited', () => {
  dirtyMark();
  if (store.open) keepSoon(store.open, draftKey());
  notice();
  checkSoon();
});

export const save = () => store.open && import('./file.js').then((file) => file.save(), () => {
  $('strip').dataset.pressing = 'yes';
  strip('Not saved: the host does not answer. The text is kept in this browser.', ['Try again', save]);
});
$('save').addEventListener('click', save);
$('history').addEventListener('click', () => open('history', store.plugin));
on('file', () => { head(); notice(); });

// ── Problems and the drawer ─────────────────────────────────────────────────────────────────────────────────────────────

const isHere = (finding) => {
  const status = pluginOf(store.open?.plugin);
  return status && (finding.file === status.path || finding.file.endsWith(`/${store.open.path}`) || finding.file === store.open.path);
};

/** The findings of the open file: what the host said of the disk, or of the text as it stands (`fresh`). */
export function showProblems(fresh) {
  const status = pluginOf(store.open?.plugin);
  // What only waits for a yes is nothing broken.
  const all = (fresh ?? [...(status?.diagnostics ?? []), ...(status?.warnings ?? [])]).map((one) => (one.code === 'permission' ? { ...one, severity: 'warning' } : one));
  store.problems = all;
  editor.setProblems(all.filter(isHere));
  $('problem-count').textContent = all.length ? String(all.length) : '';
  $('problem-count').dataset.worst = all.some((one) => one.severity === 'error') ? 'error' : all.length ? 'warning' : '';
  tell('problems');
}

export function nextProblem(step) {
  const list = [...editor.problemsNow()].sort((a, b) => a.row - b.row || a.column - b.column);
  if (!list.length) return announce('No problems.');
  const { line, column } = editor.at();
  const after = list.filter((one) => one.row > line || (one.row === line && editor.columnOf(one.row, one.column) > column));
  const before = list.filter((one) => one.row < line || (one.row === line && editor.columnOf(one.row, one.column) < column));
  const next = step > 0 ? after[0] ?? list[0] : before.at(-1) ?? list.at(-1);
  pane('script');
  jump(next);
  announce(`Line ${next.line}: ${next.message}`);
}

export const drawer = (tab) => open('drawer', tab);
export const toggleDrawer = () => call('drawer', 'toggle');
for (const tab of document.querySelectorAll('[data-tab]')) tab.addEventListener('click', () => drawer(tab.dataset.tab));

export async function escape() {
  if (!$('find').hidden) return (await import('./find.js')).close();
  if ($('drawer').contains(document.activeElement)) (await import('./drawer.js')).close();
}

// ── What the host tells ─────────────────────────────────────────────────────────────────────────────────────────────────

on('plugins', (name) => {
  drawList();
  if (name && name !== store.plugin) return;
  showChip();
  if (!isDirty()) showProblems();
  notice();
});
on('tools', () => {
  const tools = toolsOf(store.plugin);
  if (store.plugin && !tools.some((tool) => tool.name === store.tool)) {
    store.tool = tools[0]?.name ?? null;
    tell('selected');
  }
  drawList();
});

for (const name of ['plugin_live', 'plugin_failed', 'plugin_waits']) on(`host:${name}`, async (event) => {
  const mine = event.plugin === store.open?.plugin;
  if (mine) await (await import('./file.js')).diskMayHaveChanged();
  const inSight = mine && document.body.dataset.view === 'workshop';
  if (name === 'plugin_failed') {
    const goesOn = event.live ? ` Version ${event.live} goes on answering.` : '';
    if (inSight) { announce(`${event.plugin}, version ${event.disk} failed: ${event.summary}.${goesOn}`); if ((store.problems ?? []).some(isHere)) drawer('problems'); return; }
    const finding = pluginOf(event.plugin)?.diagnostics[0];
    toast(`${event.plugin} ${event.disk} failed: ${event.summary}.${goesOn}`, { kind: 'bad', action: finding && 'Go to the line', run: () => goToFinding(finding, event.plugin) });
  } else if (name === 'plugin_waits' && !inSight && !location.hash.startsWith(`#/settings/${encodeURIComponent(event.plugin)}`)) {
    toast(`${event.plugin} asks for more than it may: ${event.summary}`, { kind: 'look', action: 'See what', run: async () => { await select(event.plugin); drawer('permissions'); } });
  } else if (name === 'plugin_live' && inSight) announce(`${event.plugin} is live, version ${event.generation}.`);
});
// Whatever happened while nothing was heard of the host, the open file is looked at too.
on('anew', async () => (await import('./file.js')).diskMayHaveChanged());
on('host:notice', (event) => toast(`${event.subject}: ${event.message}`, { kind: 'look' }));
on('host:plugin_gone', (event) => { if (event.plugin === store.plugin && !pluginOf(event.plugin)) gone(event.plugin); });

// ── Keys, columns and panes ─────────────────────────────────────────────────────────────────────────────────────────────

export const run = () => { pane('run'); runs.run(); };

/** The next tool of the list, or the one before. */
export function step(direction) {
  const all = inOrder().flatMap((status) => { const tools = toolsOf(status.name); return tools.length ? tools.map((tool) => [status.name, tool.name]) : [[status.name, null]]; });
  if (!all.length) return;
  const index = all.findIndex(([plugin, tool]) => plugin === store.plugin && tool === store.tool);
  const [plugin, tool] = all[(index + direction + all.length) % all.length];
  location.hash = `#/workshop/${encodeURIComponent(plugin)}${tool ? `/${encodeURIComponent(tool)}` : ''}`;
  announce(tool ?? plugin);
}

/** Which part shows where not all fit. */
export function pane(name) {
  $('workshop').dataset.pane = name;
  for (const other of document.querySelectorAll('[data-pane][type=button]')) other.setAttribute('aria-pressed', other.dataset.pane === name);
}
for (const choice of document.querySelectorAll('[data-pane][type=button]')) choice.addEventListener('click', () => {
  if (document.body.dataset.view !== 'workshop') location.hash = '#/workshop';
  pane(choice.dataset.pane);
});
pane(matchMedia('(max-width: 640px)').matches ? 'run' : 'script');
$('plugins').addEventListener('click', (event) => { if (event.target.closest('a') && matchMedia('(max-width: 640px)').matches) pane('run'); });

for (const border of document.querySelectorAll('.border')) {
  const { col } = border.dataset;
  divide(border, `width.${col}`, col === 'list' ? 1 : -1, (width) => {
    const fit = Math.min(innerWidth * 0.6, width);
    $('workshop').style.setProperty(`--w-${col}`, `${fit}px`);
    return fit;
  });
}
