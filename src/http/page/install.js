// Installing a file: it is looked at first, and nothing is written before a person has seen what it is and what it may do.

import { keep, post, refreshTools, at, query } from './api.js';
import { h, $, announce, capital, failed, many, size, toast, toggle } from './dom.js';
import { sheet } from './sheet.js';
import { visit } from './workshop.js';

const LARGEST = 50 << 20;

/** Looks at a file; without one, opens the shell's box to choose one, which comes back here. */
export async function open(chosen) {
  if (!chosen) return $('install-file').click();
  if (!/\.(rhai|zip)$/i.test(chosen.name)) return failed({ message: `${chosen.name} is no plugin`, hint: 'a plugin is a .rhai file, or a zip of its folder' });
  if (chosen.size > LARGEST) return failed({ message: `${chosen.name} has ${size(chosen.size)}`, hint: 'a plugin has at most 50 MiB' });
  const raw = await chosen.arrayBuffer();
  const send = (more) => post(`/api/install${query({ file: chosen.name, ...more })}`, undefined, { raw, headers: { 'Content-Type': 'application/octet-stream' } });
  let look;
  try { look = await send({ look: true }); } catch (error) { return failed(error, `${chosen.name} cannot be installed`); }
  // What its owner's yes is not needed for is on; each can be switched before it is there.
  const wanted = new Map(look.permissions.map((one) => [one, Boolean(one.granted)]));
  const bad = look.diagnostics?.filter((one) => one.severity === 'error') ?? [];
  let status;
  await sheet({
    title: `Install ${look.name}${look.version ? ` ${look.version}` : ''}?`, id: 'install-sheet', wide: true,
    body: [
      look.replaces && h('p', { class: 'note', data: { kind: 'look' } }, `It takes the place of ${look.name}${look.replaces.version ? ` ${look.replaces.version}` : ''}${look.replaces.is_edited ? ', which was edited here. The edits stay in the history' : ''}. Settings and notes stay.`),
      bad.length > 0 && h('div', { class: 'trouble' }, h('p', {}, 'It would not load:'), h('ul', {}, bad.map((one) => h('li', {}, `${one.file}:${one.line}: ${one.message}`)))),
      h('h3', {}, 'What it may do'),
      look.permissions.length
        ? h('ul', { class: 'plain grants' }, look.permissions.map((one) => h('li', {}, toggle(capital(one.says), one.granted, (yes) => wanted.set(one, yes), { data: { grant: one.permission } }), h('code', { class: 'soft' }, one.permission))))
        : h('p', {}, 'It asks for nothing: it only computes, and keeps notes of its own.'),
      look.permissions.length > 0 && h('p', { class: 'help' }, 'What is off it may not do; you can switch it on later.'),
      h('h3', {}, `What it brings: ${many(look.tools.length, 'tool')}`),
      h('dl', { class: 'tools' }, look.tools.map((tool) => h('div', {}, h('dt', {}, tool.name), h('dd', { class: 'soft' }, tool.description)))),
      h('details', {}, h('summary', {}, many(look.files.length, 'file')), h('ul', {}, look.files.map((one) => h('li', {}, `${one.path}, ${size(one.bytes)}`)))),
    ],
    actions: [['Leave it', undefined], [look.replaces ? 'Replace it' : 'Install', true, 'primary']],
    onsubmit: async () => {
      const deny = look.permissions.filter((one) => one.granted && !wanted.get(one)).map((one) => one.permission).join();
      try { status = await send({ force: Boolean(look.replaces), deny }); } catch (error) { return `${capital(error.message)}.${error.hint ? ` ${capital(error.hint)}.` : ''}`; }
      return null;
    },
  });
  if (!status) return;
  keep(status);
  // What was switched off went along; a yes is a word of its own.
  for (const [one, yes] of wanted) {
    if (!yes || one.granted) continue;
    const grant = one.grant ?? one.permission;
    await post(at('plugins', status.name, 'grants'), { grant }).catch((error) => failed(error, `not granted: ${grant}`));
  }
  await refreshTools();
  await visit(status.name);
  toast(`${status.name} is installed.`, { kind: 'good' });
  announce(`${status.name} is installed.`);
}
