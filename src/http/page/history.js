// Earlier versions of a plugin: what going back to one would change, and one click to bring it back.

import { get, post, at, keep } from './api.js';
import { h, announce, button, diffView, failed, fill, many, size, toast, trouble, when } from './dom.js';
import { sheet } from './sheet.js';

export async function open(plugin) {
  let history;
  try { history = await get(at('plugins', plugin, 'history')); } catch (error) { return failed(error); }
  const detail = h('div', { class: 'detail', 'aria-live': 'polite' }, h('p', { class: 'soft' }, 'Choose a version to see what going back to it would change.'));
  const entries = [...history.entries].sort((a, b) => b.generation - a.generation);
  const choose = async (entry, item) => {
    for (const other of list.querySelectorAll('[aria-pressed]')) other.setAttribute('aria-pressed', other === item);
    try {
      const { files } = await get(at('plugins', plugin, 'history', String(entry.generation)));
      fill(detail,
        h('div', { class: 'row-head' }, h('h3', {}, `Version ${entry.generation}`), h('span', { class: 'grow' }), entry.generation !== history.live && button('Bring it back', () => bring(entry), 'primary', { data: { act: 'rollback' } })),
        files.map((file) => [h('h4', {}, file.path, h('span', { class: 'soft' }, ` ${size(file.bytes)}`)), file.diff ? diffView(file.diff, `what going back changes in ${file.path}`) : h('p', { class: 'soft' }, 'As on the disk now.')]));
    } catch (error) { fill(detail, trouble(error)); }
  };
  const bring = async (entry) => {
    try {
      keep(await post(at('plugins', plugin, 'rollback'), { generation: entry.generation }));
      list.closest('dialog').close();
      announce(`Version ${entry.generation} is back.`);
      toast(`${plugin}: the text of version ${entry.generation} is back, as a new version. What it replaced is in the history.`, { kind: 'good' });
    } catch (error) { failed(error, 'it was not brought back'); }
  };
  const list = h('ul', { class: 'plain versions' }, entries.map((entry) => h('li', {}, button([
    h('strong', {}, String(entry.generation)), h('span', { class: 'soft' }, ` ${when(entry.at)} `), entry.generation === history.live ? h('span', { class: 'good' }, 'live') : !entry.ok && h('span', { class: 'look' }, 'replaced'),
  ], (event) => choose(entry, event.currentTarget), 'quiet', { 'aria-pressed': 'false' }))));
  // The one before is what one mostly comes for.
  const before = entries.findIndex((entry) => entry.generation !== history.live);
  if (before >= 0) choose(entries[before], list.querySelectorAll('button')[before]);
  return sheet({ title: `History of ${plugin}`, wide: true, id: 'history-sheet', body: entries.length ? h('div', { class: 'split' }, list, detail) : h('p', {}, `Nothing yet. Each version that loads is kept here, the last ${many(50, 'one')} of them.`), actions: [] });
}
