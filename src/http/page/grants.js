// What a plugin may do, in words, each with a switch. What it asks for and does not have is named first.

import { get, post, at, pluginOf } from './api.js';
import { h, announce, button, capital, failed, fill, toggle, trouble } from './dom.js';

export async function show(place, plugin) {
  let value;
  try { value = await get(at('plugins', plugin, 'grants')); } catch (error) { return fill(place, trouble(error, () => show(place, plugin))); }
  draw(place, plugin, value);
}

function draw(place, plugin, value) {
  const status = pluginOf(plugin);
  const change = async (grant, granted, box) => {
    try {
      const fresh = await post(at('plugins', plugin, granted ? 'grants' : 'revoke'), { grant });
      announce(`${granted ? 'Granted' : 'Taken away'}: ${grant}.`);
      draw(place, plugin, fresh);
      place.querySelector(`[data-grant="${CSS.escape(grant)}"]`)?.focus();
    } catch (error) {
      failed(error);
      if (box) box.checked = !granted;
    }
  };
  const listed = value.permissions.filter((one) => one.declared || one.granted);
  const wishes = status?.waiting ? status.diagnostics.filter((one) => one.code === 'permission') : [];
  const folder = h('input', { type: 'text', id: 'grant-other', placeholder: 'folder:music=/home/me/Music', autocomplete: 'off', spellcheck: 'false' });
  fill(place,
    wishes.length > 0 && h('section', { class: 'note', data: { kind: 'look' } }, h('p', {}, `Version ${status.disk} is held: it asks for more than version ${status.live ?? '—'} may do.`),
      h('ul', {}, wishes.map((one) => { const grant = grantOf(one, plugin); return h('li', {}, capital(one.message), ' ', grant && button('Let it', () => change(grant, true), 'small', { 'aria-label': `Let it: ${one.message}` })); }))),
    listed.length ? h('ul', { class: 'plain grants' }, listed.map((one) => h('li', {},
      toggle(capital(one.says), one.granted, (granted, box) => change(one.permission, granted, box), { data: { grant: one.permission } }),
      h('code', { class: 'soft' }, one.permission),
      !one.declared && h('span', { class: 'soft' }, 'granted, but it does not ask for it'),
      one.why && h('p', { class: 'help' }, one.why)))) : h('p', { class: 'soft' }, 'It asks for nothing: it only computes, and keeps notes of its own.'),
    value.hosts?.length > 0 && h('p', { class: 'soft' }, `Hosts: ${value.hosts.join(', ')}`),
    Object.keys(value.folders ?? {}).length > 0 && h('ul', { class: 'plain grants' }, Object.entries(value.folders).map(([name, path]) => h('li', {}, h('code', {}, `${name} = ${typeof path === 'string' ? path : path?.path ?? ''}`), ' ', button('Take away', () => change(`folder:${name}`, false), 'quiet small')))),
    value.secrets?.length > 0 && h('p', { class: 'soft' }, `Credentials: ${value.secrets.join(', ')}`),
    h('details', {}, h('summary', {}, 'Grant something else'),
      h('form', { class: 'row-head', onsubmit: (event) => { event.preventDefault(); if (folder.value.trim()) change(folder.value.trim(), true); } },
        h('label', { class: 'sr', for: 'grant-other' }, 'What to grant'), folder, h('button', { type: 'submit', class: 'small' }, 'Grant')),
      h('p', { class: 'help' }, 'As on the command line: a folder, EXTERNAL_HTTP=a.host, or a permission by its name.')));
}

/** The text of a grant, from the hint `lapidary grant <plugin> <grant>`. */
function grantOf(finding, plugin) {
  const words = new RegExp(`lapidary grant ${plugin.replace(/[^\w-]/g, '')} ([^;\`]+)`).exec(finding.hint ?? '')?.[1];
  return words?.trim();
}

