// Uninstalling: what goes, what stays, and the way back for thirty days.

import { del, post, at, query, keep, pluginOf, refresh } from './api.js';
import { h, failed, pref, toast, when } from './dom.js';
import { sheet } from './sheet.js';

export async function open(plugin) {
  const data = h('input', { type: 'checkbox', id: 'keep-data' });
  let answer;
  await sheet({
    title: `Uninstall ${plugin}?`, id: 'uninstall',
    body: [h('p', {}, 'Its files and settings go to the history for 30 days; a click brings them back.'), h('label', { class: 'check' }, data, 'Keep its settings and notes where they are')],
    actions: [['Leave it', undefined], ['Uninstall', true, 'danger']],
    onsubmit: async () => {
      try { answer = await del(`${at('plugins', plugin)}${query({ keep_data: data.checked })}`); } catch (error) { return `${error.message}. ${error.hint}`; }
      return null;
    },
  });
  if (answer === undefined) return;
  await refresh().catch(() => {});
  // What comes with Lapidary and was hidden by a copy of one's own is back.
  const other = pluginOf(plugin);
  if (!other) {
    pref.drop('at');
    location.hash = location.hash.startsWith('#/settings') ? '#/settings' : '#/workshop';
  }
  toast(`${plugin} is uninstalled.${other ? ' The one that comes with Lapidary is back.' : ''}${answer?.undo_until ? ` It can be brought back until ${when(answer.undo_until)}.` : ''}`, { action: 'Undo', stay: 30_000, run: async () => {
    try {
      keep(await post(at('plugins', plugin, 'rollback'), {}));
      await refresh();
      location.hash = `#/workshop/${encodeURIComponent(plugin)}`;
    } catch (error) { failed(error, 'it was not brought back'); }
  } });
}
