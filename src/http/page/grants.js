// What a plugin may do, in words, each with a switch; and what a version on disk waits for, as the difference that it is.

import { get, post, at, pluginOf } from './api.js';
import { h, announce, button, capital, failed, fill, toggle, trouble } from './dom.js';

export async function show(place, plugin) {
  try { draw(place, plugin, await get(at('plugins', plugin, 'grants'))); } catch (error) { fill(place, trouble(error, () => show(place, plugin))); }
}

function draw(place, plugin, consent) {
  const status = pluginOf(plugin);
  const decide = async (grant, yes, box) => {
    try {
      draw(place, plugin, await post(at('plugins', plugin, yes ? 'grants' : 'revoke'), { grant }));
      announce(`${yes ? 'Granted' : 'Taken away'}: ${grant}.`);
      if (box) place.querySelector(`[data-grant="${CSS.escape(box.dataset.grant)}"]`)?.focus();
    } catch (error) {
      failed(error);
      if (box) box.checked = !yes;
    }
  };
  const other = h('input', { type: 'text', id: 'grant-other', placeholder: 'folder:music=/home/me/Music', autocomplete: 'off', spellcheck: 'false' });
  const { permissions, wishes = [], hosts = [], folders = {}, secrets = [] } = consent;
  fill(place,
    wishes.length > 0 && h('section', { class: 'wishes', 'aria-label': 'What it waits for' },
      h('p', {}, status?.live ? `Version ${status.disk} is held: it asks for more than version ${status.live} may do. It goes live with your yes.` : 'It is held until you let it do this:'),
      h('ul', { class: 'plain' }, wishes.map((wish) => h('li', { class: 'row-head', data: { wish: wish.permission } }, h('span', { 'aria-hidden': 'true' }, '+'), h('span', {}, `it may ${wish.says}`), h('code', { class: 'soft' }, wish.grant), h('span', { class: 'grow' }),
        button('Let it', () => decide(wish.grant, true), 'small', { 'aria-label': `Let it ${wish.says}` }))))),
    permissions.length ? h('ul', { class: 'plain grants' }, permissions.map((one) => h('li', {},
      one.declared
        ? toggle(capital(one.says), one.granted, (yes, box) => decide(yes ? one.grant ?? one.permission : one.permission, yes, box), { data: { grant: one.permission } })
        : [h('span', {}, capital(one.says)), button('Take away', () => decide(one.permission, false), 'quiet small')],
      h('code', { class: 'soft' }, one.names?.length ? `${one.permission}=${one.names.join(',')}` : one.permission),
      one.why && h('p', { class: 'help' }, `${capital(one.why)}.`)))) : !wishes.length && h('p', { class: 'soft' }, 'It asks for nothing: it only computes, and keeps notes of its own.'),
    extra('Hosts that you added', hosts, (name) => decide(`EXTERNAL_HTTP=${name}`, false)),
    extra('Folders', Object.entries(folders).map(([name, path]) => `${name} = ${path}`), (text) => decide(`folder:${text.split(' = ')[0]}`, false)),
    extra('Credentials', secrets, (name) => decide(`USE_SECRETS=${name}`, false)),
    h('details', {}, h('summary', {}, 'Grant something else'),
      h('form', { class: 'row-head', onsubmit: (event) => { event.preventDefault(); if (other.value.trim()) decide(other.value.trim(), true); } },
        h('label', { class: 'sr', for: 'grant-other' }, 'What to grant'), other, h('button', { type: 'submit', class: 'small' }, 'Grant')),
      h('p', { class: 'help' }, 'As on the command line: a folder, EXTERNAL_HTTP=a.host, or a permission by its name.')));
}

/** A list of what was granted by name, each to be taken away. */
const extra = (title, names, away) => names.length > 0 && h('div', { class: 'row-head wrap' }, h('span', { class: 'soft' }, `${title}:`), names.map((name) => h('span', { class: 'row-head' }, h('code', {}, name), button('×', () => away(name), 'quiet small', { 'aria-label': `Take away ${name}` }))));
