// Dialogs: a native `dialog` with a heading, a body and buttons. Escape closes it, the focus stays inside and goes back after.

import { h, button, fill } from './dom.js';

/** Opens one. `body` is nodes; `actions` are `[words, value, kind]`. Resolves with the value of what was pressed, or undefined. */
export function sheet({ title, body, actions = [['Close', undefined]], wide = false, id, onsubmit }) {
  return new Promise((done) => {
    let value;
    const buttons = actions.map(([words, answer, kind]) => (kind === 'primary' || kind === 'danger')
      ? h('button', { type: 'submit', class: kind, data: { answer: String(answer) } }, words)
      : button(words, () => dialog.close(), kind ?? ''));
    buttons.forEach((one, index) => { if (one.type === 'button') one.addEventListener('click', () => { value = actions[index][1]; }, { capture: true }); });
    const trouble = h('div', { 'aria-live': 'assertive' });
    const content = h('div', { class: 'body' }, body);
    // What can only be scrolled must be reachable by keys too.
    if (!content.querySelector('a, button, input, select, textarea, [tabindex]')) content.tabIndex = 0;
    const form = h('form', { method: 'dialog', novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      const index = buttons.indexOf(event.submitter ?? buttons.find((one) => one.type === 'submit'));
      const answer = actions[index]?.[1] ?? true;
      if (onsubmit) {
        const refused = await onsubmit(answer, dialog);
        if (refused) return fill(trouble, h('p', { class: 'trouble' }, refused));
      }
      value = answer;
      dialog.close();
    } }, content, trouble, actions.length ? h('div', { class: 'actions' }, buttons) : null);
    const heading = `${id ?? 'sheet'}-title`;
    const dialog = h('dialog', { class: wide ? 'sheet-dialog wide-dialog' : 'sheet-dialog', id, 'aria-labelledby': heading, onclose: () => { dialog.remove(); done(value); } },
      h('div', { class: 'title' }, h('h2', { id: heading }, title), h('span', { class: 'grow' }), button('×', () => dialog.close(), 'quiet icon', { 'aria-label': 'Close' })), form);
    document.body.append(dialog);
    dialog.showModal();
    // The next Enter does what one came for, but nothing that is hard to take back.
    (dialog.querySelector('[autofocus]') ?? buttons.find((one) => one.type === 'submit' && !one.classList.contains('danger')) ?? buttons[0])?.focus();
  });
}

/** Asks before something that is not easily taken back. `name` has to be typed where it is given. */
export function ask(title, lines, words, { name, danger = true } = {}) {
  const typed = name && h('input', { type: 'text', autocomplete: 'off', id: 'ask-name', autofocus: true });
  return sheet({
    title, id: 'ask',
    body: [lines.map((line) => h('p', {}, line)), name && h('p', {}, h('label', { for: 'ask-name' }, `Type ${name} to go on: `), typed)],
    actions: [['Leave it', undefined], [words, true, danger ? 'danger' : 'primary']],
    onsubmit: () => (name && typed.value !== name ? `That is not ${name}.` : null),
  });
}
