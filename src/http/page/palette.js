// The palette of Ctrl+K: commands, tools, plugins, and a new tool. What is typed is sought in all of them.

import { store, del, at, chipOf, toolsOf, pluginOf, tell } from './api.js';
import { h, announce, failed, fill, onMac } from './dom.js';
import * as workshop from './workshop.js';
import * as main from './main.js';
import { run } from './run.js';
import { ranked, explain } from './complete.js';

const ctrl = onMac ? '⌘' : 'Ctrl ';

function commands() {
  const { plugin } = store;
  const status = pluginOf(plugin);
  const go = (hash) => () => { location.hash = hash; };
  const list = [
    ['New tool', () => main.open('new'), '', 'make create script plugin'],
    ['Run the tool', run, `${ctrl}⏎`],
    ['Save', workshop.save, `${ctrl}S`],
    ['Install a file…', () => main.open('install'), '', 'add zip rhai import'],
    ['Workshop', go('#/workshop')], ['Journal', go('#/journal'), '', 'calls history last night'], ['Settings', go('#/settings')],
    ['Sign-in, tokens and password', go('#/settings/-access')], ['Toolsets', go('#/settings/-toolsets')], ['Uninstalled plugins', go('#/settings/-removed'), '', 'undo bring back'],
    ['Find in the script', () => main.open('find'), `${ctrl}F`], ['Replace in the script', () => main.open('find', 'replace'), `${ctrl}H`], ['Go to a line', () => main.open('find', 'line'), `${ctrl}G`],
    ['Next problem', () => workshop.nextProblem(1), 'F8'], ['Explain the name at the caret', explain, `${ctrl}K ${ctrl}I`, 'hover docs'],
    ['Show or hide the drawer', workshop.toggleDrawer, `${ctrl}J`],
    ...['problems', 'log', 'settings', 'schema', 'permissions'].map((tab) => [`Drawer: ${tab}`, () => workshop.drawer(tab)]),
    ['Keys', () => main.open('help'), '?', 'help shortcuts'],
    ['Colours: as the system', () => main.theme('system'), '', 'theme'], ['Colours: light', () => main.theme('light'), '', 'theme'], ['Colours: dark', () => main.theme('dark'), '', 'theme'],
    ['Clear the journal', clear], ['Sign out', out],
  ];
  if (status) list.push(
    [`History of ${plugin}`, () => main.open('history', plugin), '', 'rollback versions'],
    [`Reload ${plugin}`, () => workshop.act(plugin, 'reload')],
    status.enabled ? [`Switch ${plugin} off`, () => workshop.act(plugin, 'disable')] : [`Switch ${plugin} on`, () => workshop.act(plugin, 'enable')],
    [`Download ${plugin}`, () => { location.href = at('plugins', plugin, 'download'); }, '', 'share export'],
    [`Settings of ${plugin}`, go(`#/settings/${encodeURIComponent(plugin)}`)],
    ...(status.origin === 'shipped' ? [] : [[`Uninstall ${plugin}`, () => main.open('uninstall', plugin), '', 'delete remove']]),
  );
  return list.map(([name, act, keys = '', more = '']) => ({ name, kind: 'command', act, keys, more }));
}

function everything() {
  const tools = store.plugins.flatMap((status) => toolsOf(status.name)).map((tool) => ({ name: tool.name, kind: 'tool', more: tool.plugin, act: () => { location.hash = `#/workshop/${encodeURIComponent(tool.plugin)}/${encodeURIComponent(tool.name)}`; } }));
  const plugins = store.plugins.map((status) => ({ name: status.name, kind: 'plugin', more: chipOf(status).long, act: () => { location.hash = `#/workshop/${encodeURIComponent(status.name)}`; } }));
  return [...commands(), ...tools, ...plugins];
}

export function open() {
  const before = document.activeElement;
  const all = everything();
  let shown = [];
  let now = 0;
  const list = h('ul', { role: 'listbox', id: 'palette-list', 'aria-label': 'Commands, tools and plugins' });
  const input = h('input', { type: 'text', id: 'palette-word', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-autocomplete': 'list', 'aria-label': 'What to do or where to go', placeholder: 'a command, a tool, a plugin…', autocomplete: 'off', spellcheck: 'false', oninput: draw });
  const dialog = h('dialog', { class: 'palette', id: 'palette', 'aria-label': 'Commands', onclose: () => dialog.remove(), onclick: (event) => { if (event.target === dialog) dialog.close(); },
    onkeydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && shown.length) { event.preventDefault(); return point((now + step + shown.length) % shown.length); }
      if (event.key === 'Enter') { event.preventDefault(); return choose(now); }
      // Ctrl+K Ctrl+I: the second half of a key that began with the palette's own.
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'i' && !input.value) { event.preventDefault(); dialog.close(); before?.focus?.({ preventScroll: true }); explain(); }
    } }, input, list);
  function draw() {
    const word = input.value.trim();
    const fresh = /^new\s+(?:tool\s+)?(\w+)$/i.exec(word)?.[1];
    shown = word ? ranked(all, word).slice(0, 40) : all.filter((item) => item.kind !== 'tool').slice(0, 40);
    const hidden = word ? all.filter((item) => !shown.includes(item) && item.more?.toLowerCase().includes(word.toLowerCase())).slice(0, 8) : [];
    shown = [...(fresh && fresh !== 'tool' ? [{ name: `New tool ${fresh}`, kind: 'command', act: () => main.open('new', fresh) }] : []), ...shown, ...hidden];
    fill(list, shown.map((item, index) => h('li', { role: 'option', id: `palette-${index}`, 'aria-selected': 'false', onclick: () => choose(index), onpointermove: () => { if (now !== index) point(index); } },
      h('span', { class: 'name' }, item.name), h('span', { class: 'soft' }, item.kind === 'command' ? item.keys : item.kind === 'tool' ? `tool of ${item.more}` : `plugin · ${item.more}`))),
    !shown.length && h('li', { class: 'soft', role: 'option', 'aria-disabled': 'true', 'aria-selected': 'false' }, 'Nothing fits.'));
    if (shown.length) point(0);
  }
  function point(index) {
    now = index;
    [...list.children].forEach((option, place) => option.setAttribute('aria-selected', place === now));
    list.children[now].scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', `palette-${now}`);
  }
  function choose(index) {
    const item = shown[index];
    if (!item) return;
    dialog.close();
    item.act();
  }
  draw();
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}

async function clear() {
  const { ask } = await import('./sheet.js');
  if (!await ask('Clear the journal?', ['Every call that was written down is forgotten. This cannot be taken back.'], 'Clear it')) return;
  try { await del('/api/journal'); tell('host:journal_cleared'); announce('The journal is empty.'); } catch (error) { failed(error); }
}

async function out() {
  try { await del('/api/session'); } catch (error) { return failed(error); }
  location.reload();
}

