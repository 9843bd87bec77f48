// The drawer under the script: problems, log, settings, schema, permissions. It opens by itself only for a problem in the open
// file; whoever closes it is not asked again for the same one.

import { store, on, get, at, query, pluginOf, toolsOf } from './api.js';
import { h, $, divide, empty, fill, many, pref, trouble, when } from './dom.js';
import { goToFinding } from './workshop.js';
import { logLines } from './result.js';

const drawer = $('drawer');
const body = $('drawer-body');
const tabs = [...drawer.querySelectorAll('[data-tab]')];
let tab = null;
let drawing = 0;

export function open(name) {
  if (tab === name && drawer.dataset.open === 'true') return name === 'problems' ? draw() : close();
  tab = name ?? tab ?? 'problems';
  drawer.dataset.open = 'true';
  body.hidden = false;
  for (const one of tabs) {
    one.setAttribute('aria-selected', one.dataset.tab === tab);
    one.tabIndex = one.dataset.tab === tab ? 0 : -1;
  }
  body.setAttribute('aria-label', tab);
  return draw();
}

export function close() {
  const inside = body.contains(document.activeElement);
  drawer.dataset.open = 'false';
  body.hidden = true;
  for (const one of tabs) one.setAttribute('aria-selected', 'false');
  if (inside) tabs.find((one) => one.dataset.tab === tab)?.focus();
}

export const toggle = () => (drawer.dataset.open === 'true' ? close() : open(tab ?? 'problems'));

drawer.querySelector('.tabs').addEventListener('keydown', (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const index = tabs.indexOf(document.activeElement);
  const next = tabs[(index + step + tabs.length) % tabs.length];
  next.focus();
  if (drawer.dataset.open === 'true') open(next.dataset.tab);
});

async function draw() {
  drawing += 1;
  const mine = drawing;
  if (!pluginOf(store.plugin)) return fill(body, h('p', { class: 'soft' }, 'Nothing is chosen.'));
  const panel = { problems, log, settings, schema, permissions }[tab];
  try {
    const content = await panel();
    if (mine === drawing) fill(body, content);
  } catch (error) {
    if (mine === drawing) fill(body, trouble(error, draw));
  }
}

function problems() {
  const all = store.problems ?? [];
  if (!all.length) return h('p', { class: 'soft' }, 'No problems.');
  return h('ul', { class: 'plain problems' }, all.map((one) => h('li', { data: { severity: one.severity } },
    h('button', { type: 'button', class: 'quiet', onclick: () => goToFinding(one) },
      h('span', { class: one.severity === 'error' ? 'bad' : 'look', 'aria-label': one.severity }, one.severity === 'error' ? '✗' : '!'),
      h('span', { class: 'soft place' }, one.line ? `${one.file.split('/').pop()}:${one.line}:${one.column}` : one.file.split('/').pop()),
      h('span', {}, one.message)),
    one.hint && h('p', { class: 'soft' }, one.hint))));
}

/** The lines that the last calls of this plugin wrote. */
async function log() {
  const { calls } = await get(`/api/journal${query({ plugin: store.plugin, limit: 6 })}`);
  const full = await Promise.all(calls.map((call) => get(at('journal', call.id)).catch(() => null)));
  const said = full.filter((call) => call?.logs?.length);
  if (!said.length) return h('p', { class: 'soft' }, 'Nothing was logged lately. log::info("…") in the script writes here.');
  return said.map((call) => h('section', {}, h('h2', { class: 'soft' }, h('a', { href: `#/journal/${encodeURIComponent(call.id)}` }, `${when(call.at)} ${call.tool}`)), logLines(call.logs)));
}

async function settings() {
  const place = h('div');
  await (await import('./settings.js')).show(place, store.plugin);
  return place;
}

async function permissions() {
  const place = h('div');
  await (await import('./grants.js')).show(place, store.plugin);
  return place;
}

const DIALECTS = ['openai', 'anthropic', 'gemini', 'llama', 'plain'];

/** The exact definition that a model gets, in the form its provider takes. */
async function schema() {
  if (!store.tool) return empty(toolsOf(store.plugin).length ? 'Choose a tool.' : 'There is no live tool to show.');
  const place = h('div');
  const dialect = pref.get('dialect', 'openai');
  const choice = h('select', { id: 'dialect', 'aria-label': 'Whose form' }, DIALECTS.map((name) => h('option', { value: name }, name)));
  choice.value = dialect;
  choice.addEventListener('change', () => { pref.set('dialect', choice.value); draw(); });
  const { tools } = await get(`${at('tools', store.tool, 'preview')}${query({ dialect })}`);
  const one = tools.find((tool) => tool.tool === store.tool) ?? tools[0];
  return fill(place,
    h('div', { class: 'row-head' }, h('h2', {}, store.tool), choice, h('span', { class: 'soft' }, many(one.tokens, 'token')), one.name !== one.tool && h('span', { class: 'soft' }, `the model calls it ${one.name}`)),
    one.notes?.map((note) => h('p', { class: 'note', data: { kind: 'look' } }, note)),
    h('pre', { class: 'said json', tabindex: '0', 'aria-label': 'definition' }, typeof one.definition === 'string' ? one.definition : JSON.stringify(one.definition, null, 2)));
}

const isOpen = () => drawer.dataset.open === 'true';
on('problems', () => {
  if (isOpen() && tab === 'problems') draw();
});
on('selected', () => { if (isOpen()) draw(); });
on('opened', () => { if (isOpen() && tab === 'problems') draw(); });
on('tools', () => { if (isOpen() && tab === 'schema') draw(); });
on('host:call_ended', () => { if (isOpen() && tab === 'log') draw(); });
on('host:plugin_live', (event) => { if (isOpen() && event.plugin === store.plugin && tab === 'permissions') draw(); });
on('host:plugin_waits', (event) => { if (isOpen() && event.plugin === store.plugin && tab === 'permissions') draw(); });

// The edge between text and drawer can be moved, and remembers.
const edge = h('div', { class: 'edge', role: 'separator', tabindex: '0', 'aria-orientation': 'horizontal', 'aria-label': 'Height of the drawer', 'aria-controls': 'drawer-body', 'aria-valuemin': '15', 'aria-valuemax': '75', 'aria-valuenow': '30' });
drawer.prepend(edge);
divide(edge, 'height.drawer', -1, (share) => { drawer.style.setProperty('--h-drawer', `${share}%`); return share; }, 5, () => 100 / $('script-col').clientHeight);
