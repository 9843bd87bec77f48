// A new tool: a name, and which form. The host writes a working body; the page opens it.

import { keep, post, pluginOf, refreshTools } from './api.js';
import { h, capital, toast } from './dom.js';
import { sheet } from './sheet.js';
import { pane, visit } from './workshop.js';

export async function open(given = '') {
  const name = h('input', { type: 'text', id: 'new-name', name: 'name', value: given, autocomplete: 'off', spellcheck: 'false', maxlength: '64', autofocus: true, 'aria-describedby': 'new-name-help' });
  const kind = radios('kind', [['tool', 'One file, user/tools/<name>.rhai: the quick way'], ['plugin', 'A folder with a manifest, for settings, routes, tests']]);
  const form = radios('form', [['documented', 'A function with a comment: the comment is the schema'], ['explicit', 'A schema written out, for what a comment cannot say']]);
  let status;
  await sheet({
    title: 'New tool', id: 'new',
    body: [
      h('p', { class: 'field' }, h('label', { for: 'new-name' }, 'Name'), name, h('span', { class: 'help', id: 'new-name-help' }, 'Small letters, digits and _; it is also the name of its first tool.')),
      kind.element, form.element,
    ],
    actions: [['Cancel', undefined], ['Make it', true, 'primary']],
    onsubmit: async () => {
      const text = name.value.trim();
      if (!/^[A-Za-z][\w-]*$/.test(text)) { name.focus(); return 'A name begins with a letter and has letters, digits, _ and - only.'; }
      if (pluginOf(text)) return `There is a plugin ${text} already.`;
      try { status = await post('/api/plugins', { name: text, kind: kind.value(), form: form.value() }); } catch (error) { return `${capital(error.message)}.${error.hint ? ` ${capital(error.hint)}.` : ''}`; }
      return null;
    },
  });
  if (!status) return;
  keep(status);
  await refreshTools();
  await visit(status.name);
  pane('script');
  document.getElementById('code').focus();
  toast(`${status.name} is live. Change its text; saving makes the change live.`, { kind: 'good' });
}

function radios(name, choices) {
  const element = h('fieldset', { class: 'radios' }, h('legend', { class: 'sr' }, name), choices.map(([value, words], index) => h('label', {}, h('input', { type: 'radio', name: `new-${name}`, value, checked: index === 0 }), ' ', words)));
  return { element, value: () => element.querySelector(':checked').value };
}
