// The Settings view: at the left every plugin and what belongs to the host; at the right what is chosen: switches, permissions,
// settings, files to share; or toolsets, or who may sign in.

import { store, on, get, at, chipOf, pluginOf } from './api.js';
import { h, button, empty, fill, sync, toggle, when } from './dom.js';
import { act, chip, visit } from './workshop.js';
import { open } from './main.js';

const HOST = [['-access', 'Sign-in and tokens'], ['-toolsets', 'Toolsets'], ['-removed', 'Uninstalled'], ['-about', 'This host']];
let place = null;
let chosen = null;
let sought = '';

export async function show(element, [name]) {
  if (!place) build(element);
  chosen = name ?? (matchMedia('(max-width: 640px)').matches ? null : store.plugin ?? store.plugins[0]?.name ?? '-access');
  place.columns.dataset.pane = name ? 'detail' : 'list';
  drawList();
  await draw();
}

function build(element) {
  place = { list: h('nav', { class: 'scroll list', 'aria-label': 'What to set' }), detail: h('div', { class: 'detail scroll', id: 'settings-detail' }) };
  place.columns = h('div', { class: 'two' },
    h('div', { class: 'col list' }, h('div', { class: 'head' }, h('h2', { class: 'sr' }, 'Plugins and settings'),
      h('input', { type: 'search', id: 'settings-filter', 'aria-label': 'Filter', placeholder: 'filter…', autocomplete: 'off', oninput: (event) => { sought = event.target.value.trim().toLowerCase(); drawList(); } }),
      button('Install…', () => open('install'), 'small')), place.list),
    h('div', { class: 'col sheet-col' }, place.detail));
  fill(element, place.columns);
}

const entry = (name, words, extra) => [`${name} ${name === chosen} ${extra?.[0] ?? ''}`, () => h('a', { class: 'item', href: `#/settings/${encodeURIComponent(name)}`, 'aria-current': name === chosen ? 'true' : null, data: { setting: name } }, h('span', { class: 'name' }, words), extra?.[1]())];

function drawList() {
  const plugins = store.plugins.filter((status) => status.name.toLowerCase().includes(sought));
  sync(place.list, [
    ['# host', () => h('h2', {}, 'host')], ...HOST.map(([name, words]) => entry(name, words)),
    ['# plugins', () => h('h2', {}, 'plugins')],
    ...plugins.map((status) => entry(status.name, status.name, [chipOf(status).long, () => chip(status, true)])),
    ...(plugins.length ? [] : [['# none', () => empty('No plugin fits.')]]),
  ]);
}

async function draw() {
  const { detail } = place;
  if (!chosen) return fill(detail, empty('Choose what to set.'));
  if (chosen.startsWith('-')) {
    const body = h('div');
    fill(detail, back(), body);
    return (await import('./host.js')).show(body, chosen);
  }
  const status = pluginOf(chosen);
  if (!status) return fill(detail, back(), empty(`There is no plugin ${chosen}.`, button('Show the others', () => { location.hash = '#/settings'; }, 'small')));
  const settings = h('div');
  const grants = h('div');
  const origin = h('p', { class: 'soft' });
  const head = h('div', { id: 'plugin-head' });
  fill(detail, back(), head,
    h('section', {}, h('h3', {}, 'Settings'), settings),
    h('section', {}, h('h3', {}, 'What it may do'), grants),
    h('section', { id: 'plugin-tail' }), origin);
  drawHead(status);
  get(at('plugins', status.name, 'files')).then(({ installed }) => { if (installed) fill(origin, cameFrom(installed)); }).catch(() => {});
  const [forms, permissions] = await Promise.all([import('./settings.js'), import('./grants.js')]);
  await Promise.all([forms.show(settings, status.name), permissions.show(grants, status.name)]);
}

/** Where it came from, and whether it is still what came. */
const cameFrom = (one) => `Installed from ${one.from} on ${when(one.at)}${one.version ? `, version ${one.version}` : ''}; ${one.edited.length ? `edited since: ${one.edited.join(', ')}` : 'not edited since'}.`;

const back = () => button('‹ all', () => { location.hash = '#/settings'; }, 'quiet small back');

function drawHead(status) {
  const head = document.getElementById('plugin-head');
  const tail = document.getElementById('plugin-tail');
  if (!head) return;
  const first = status.diagnostics[0];
  fill(head,
    h('div', { class: 'row-head' }, h('h2', {}, status.name), chip(status), h('span', { class: 'grow' }),
      toggle('on', status.enabled, (on) => act(status.name, on ? 'enable' : 'disable'), { id: 'plugin-on', 'aria-label': `${status.name} is on` })),
    h('p', {}, status.description),
    h('p', { class: 'soft' }, [status.origin === 'shipped' ? 'comes with Lapidary' : status.path, status.version && `version ${status.version}`, status.tools.length ? status.tools.join(', ') : 'no tools'].filter(Boolean).join(' · ')),
    first && h('div', { class: status.waiting ? 'note' : 'trouble', data: { kind: 'look' } }, h('p', {}, first.line ? `${first.file}:${first.line}: ${first.message}` : first.message), first.hint && !status.waiting && h('p', { class: 'soft' }, first.hint)),
    status.quarantined?.map((one) => h('p', { class: 'note', data: { kind: 'look' } }, `Left out: ${one.tool}. ${one.reason}`)));
  fill(tail, h('div', { class: 'row-head wrap' },
    button('Open in the Workshop', () => visit(status.name)),
    button('History', () => open('history', status.name)),
    button('Reload', () => act(status.name, 'reload')),
    h('a', { class: 'button', href: at('plugins', status.name, 'download'), download: '' }, 'Download'),
    status.origin !== 'shipped' && button('Uninstall…', () => open('uninstall', status.name), 'danger')));
}

on('plugins', (name) => {
  if (!place || document.body.dataset.view !== 'settings') return;
  drawList();
  if (chosen?.startsWith('-')) return;
  const status = pluginOf(chosen);
  if (!status || !document.getElementById('plugin-head')) draw();
  else if (!name || name === chosen) drawHead(status);
});
on('acted', ({ plugin }) => { if (place && plugin === chosen && document.body.dataset.view === 'settings') draw(); });
for (const name of ['plugin_live', 'plugin_waits']) on(`host:${name}`, async ({ plugin }) => {
  if (place && plugin === chosen && document.body.dataset.view === 'settings') {
    const grants = place.detail.querySelector('.grants')?.parentElement;
    if (grants && !grants.contains(document.activeElement)) (await import('./grants.js')).show(grants, plugin);
  }
});

