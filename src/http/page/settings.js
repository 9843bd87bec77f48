// A plugin's settings: a form of its own fields, what a change would make the model read, and Save. Used in the drawer and in
// the Settings view. The host checks and stores; here is only the form.

import { on, get, put, del, post, at, query } from './api.js';
import { h, button, calm, capital, diffView, empty, failed, fill, many, sentence, toast, trouble } from './dom.js';
import { ask } from './sheet.js';

const MASK = '••••••';

/** Shows the form. `saved` is what to say of a save that was just made. */
export async function show(place, plugin, saved) {
  let view;
  try { view = await get(at('plugins', plugin, 'settings')); } catch (error) {
    return fill(place, error.status === 404 || error.code === 'disabled' ? h('p', { class: 'soft' }, `${capital(error.message)}.`) : trouble(error, () => show(place, plugin)));
  }
  if (!view.fields.length) return fill(place, empty('This plugin has no settings. A manifest declares them, or SETTINGS in a script.'), notes(view));
  draw(place, plugin, view, saved);
}

const notes = (view) => [...view.notes ?? [], ...view.set_aside ?? [], ...(view.unknown?.length ? [`Kept, but no field knows: ${view.unknown.join(', ')}.`] : [])]
  .map((text) => h('p', { class: 'note', data: { kind: 'look' } }, text));

function draw(place, plugin, view, saved) {
  const name = `set${++count}`;
  const fields = view.fields.map((field) => fieldOf(field, view, name));
  const preview = h('div', { class: 'preview', 'aria-live': 'polite' });
  const said = h('div', { role: 'alert' }, saved && h('p', { class: 'good' }, saved));
  const save = h('button', { type: 'submit', class: 'primary', disabled: true, data: { act: 'save' } }, 'Save');
  const back = button('Take back', () => show(place, plugin), '', { disabled: true });
  const change = () => Object.fromEntries(fields.filter((one) => JSON.stringify(one.get()) !== JSON.stringify(one.before)).map((one) => [one.field.key, one.get()]));
  const look = calm(300, async () => {
    const settings = change();
    if (!form.isConnected) return;
    if (!Object.keys(settings).length) return fill(preview);
    try {
      const made = await post(`${at('plugins', plugin, 'settings', 'preview')}${query({})}`, { settings });
      if (JSON.stringify(settings) !== JSON.stringify(change())) return;
      fill(said);
      fill(preview, previewOf(made));
    } catch (error) {
      fill(preview);
      fill(said, h('p', { class: 'trouble' }, sentence(error)));
      mark(fields, error);
    }
  });
  const changed = () => {
    const any = Object.keys(change()).length > 0;
    save.disabled = !any;
    back.disabled = !any;
    for (const one of fields) one.note.hidden = true;
    look();
  };
  const tabs = [...new Set(fields.map((one) => one.field.tab || 'General'))].sort((a, b) => (b === 'General') - (a === 'General'));
  const groups = tabs.map((tab) => h('div', { class: 'fields', id: `${name}-${tab}`, role: tabs.length > 1 ? 'tabpanel' : null, 'aria-label': tabs.length > 1 ? tab : null, data: { group: tab } }, fields.filter((one) => (one.field.tab || 'General') === tab).map((one) => one.element)));
  const heads = tabs.map((tab) => button(tab, () => pick(tab), null, { role: 'tab', 'aria-controls': `${name}-${tab}`, data: { group: tab } }));
  const pick = (tab) => {
    groups.forEach((group) => { group.hidden = group.dataset.group !== tab; });
    heads.forEach((head) => { head.setAttribute('aria-selected', head.dataset.group === tab); head.tabIndex = head.dataset.group === tab ? 0 : -1; });
  };
  pick(tabs[0]);
  const form = h('form', { class: 'settings', novalidate: true, autocomplete: 'off', data: { plugin },
    oninput: changed, onchange: changed,
    onsubmit: async (event) => {
      event.preventDefault();
      const settings = change();
      for (const one of fields) {
        const confirm = one.field.confirm;
        if (!(one.field.key in settings) || !confirm?.values.some((value) => JSON.stringify(value) === JSON.stringify(settings[one.field.key]))) continue;
        if (!await ask(confirm.title ?? `Set ${labelOf(one.field)}?`, confirm.warnings ?? [], confirm.buttonLabel ?? 'Set it')) return;
      }
      try {
        const tuned = await put(at('plugins', plugin, 'settings'), { settings }, { headers: { 'If-Match': `"${view.etag}"` } });
        const differ = tuned.tools?.length ?? 0;
        await show(place, plugin, `Saved.${differ ? ` ${many(differ, 'tool')} ${differ === 1 ? 'reads' : 'read'} differently now.` : ''}`);
      } catch (error) {
        if (error.status === 412 || error.status === 409) return fill(said, h('p', { class: 'trouble' }, 'These settings were changed elsewhere meanwhile. ', button('Read them again', () => show(place, plugin), 'small')));
        fill(said, h('p', { class: 'trouble' }, sentence(error, 'not saved')));
        mark(fields, error);
      }
    } },
  h('div', {}, notes(view), heads.length > 1 && h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Pages of settings' }, heads), groups),
  // What it comes to stands beside the fields where there is room, below them where there is none.
  h('div', { class: 'side-by' }, h('div', { class: 'row-head actions' }, save, back, h('span', { class: 'grow' }),
    view.stored.length > 0 && button('All to their defaults', async () => {
      try {
        const kept = Object.fromEntries(view.fields.filter((field) => view.stored.includes(field.key) && field.widget !== 'password').map((field) => [field.key, view.values[field.key]]));
        await del(at('plugins', plugin, 'settings'));
        toast(`${plugin}: settings are their defaults again.`, { action: 'Undo', run: async () => { try { await put(at('plugins', plugin, 'settings'), { settings: kept }); await show(place, plugin); } catch (error) { failed(error); } } });
        await show(place, plugin);
      } catch (error) { failed(error); }
    }, 'quiet small')), said, preview));
  place.classList.add('settings-place');
  fill(place, form);
  form.addEventListener('list-changed', changed);
}
let count = 0;

// A change from another door is shown, unless this form holds one of its own.
on('host:settings_changed', ({ plugin }) => {
  for (const form of document.querySelectorAll('form.settings')) {
    if (form.dataset.plugin === plugin && form.querySelector('[type=submit]').disabled) show(form.parentElement, plugin);
  }
});

/** What the model would read, old and new, with what it costs. */
function previewOf(made) {
  const differ = made.tools.filter((tool) => tool.diff || tool.offered !== tool.offered_before);
  const cost = made.tokens - made.tokens_before;
  if (!differ.length) return h('p', { class: 'soft' }, 'The model would read the same as now.');
  return [
    h('p', {}, `The model would read this differently: `, h('strong', {}, `${cost > 0 ? '+' : cost < 0 ? '−' : '±'}${many(Math.abs(cost), 'token')}`), h('span', { class: 'soft' }, ` (${made.tokens_before} → ${made.tokens})`)),
    differ.map((tool) => [h('p', {}, h('strong', {}, tool.tool), ' ', tool.offered !== tool.offered_before && h('span', { class: 'look' }, tool.offered ? 'would be offered' : 'would be switched off')), tool.diff && diffView(tool.diff, `what changes in ${tool.tool}`)]),
    made.ignored?.length > 0 && h('p', { class: 'soft' }, `Needs a reload: ${made.ignored.join(', ')}.`),
  ];
}

/** An error that names a setting is shown at that setting. */
function mark(fields, error) {
  const key = /setting `([^`]+)`/.exec(error.message)?.[1];
  const one = fields.find((field) => field.field.key === key);
  if (!one) return;
  one.note.textContent = error.message;
  one.note.hidden = false;
}

const labelOf = (field) => field.label || capital(field.key.replace(/[_.-]+/g, ' '));

function fieldOf(field, view, name) {
  const id = `${name}-${field.key}`;
  const value = view.values[field.key];
  const made = controlOf(field, id, value);
  const note = h('p', { class: 'wrong', id: `${id}-wrong`, hidden: true });
  const isSet = view.stored.includes(field.key);
  const label = made.group ? h('span', { class: 'label', id: `${id}-label` }, labelOf(field)) : h('label', { for: id }, labelOf(field));
  const set = h('span', { class: 'limits soft' }, isSet ? 'set' : 'default');
  const help = field.help && h('p', { class: 'help', id: `${id}-help` }, field.help.split('`').map((piece, at) => (at % 2 ? h('code', {}, piece) : piece)));
  (made.described ?? made.element).setAttribute('aria-describedby', `${id}-help ${id}-wrong`);
  return { field, before: value, get: made.get, note, element: h('div', { class: made.inline ? 'field inline' : 'field', data: { key: field.key, kind: field.widget ?? field.type } }, label, set, made.element, help, note) };
}

function controlOf(field, id, value) {
  const options = (field.options ?? []).map((one) => (one && typeof one === 'object' && 'value' in one ? one : { label: String(one), value: one }));
  const common = { id, autocomplete: 'off', placeholder: field.placeholder || null };
  if (field.type === 'list') return listOf(field, id, value ?? [], options);
  if (field.widget === 'radio') {
    const element = h('div', { class: 'radios', role: 'radiogroup', 'aria-labelledby': `${id}-label` }, options.map((one, index) =>
      h('label', {}, h('input', { type: 'radio', name: id, value: String(index), checked: JSON.stringify(one.value) === JSON.stringify(value) }), ' ', one.label)));
    return { element, group: true, get: () => options[Number(element.querySelector(':checked')?.value)]?.value ?? value };
  }
  if (options.length || field.widget === 'select') {
    const index = options.findIndex((one) => JSON.stringify(one.value) === JSON.stringify(value));
    const element = h('select', common, index < 0 && h('option', { value: '' }, value === '' ? '—' : String(value)), options.map((one, at) => h('option', { value: String(at) }, one.label)));
    element.value = index < 0 ? '' : String(index);
    return { element, get: () => (element.value === '' ? value : options[Number(element.value)].value) };
  }
  if (field.type === 'boolean') {
    const element = h('input', { id, type: 'checkbox', role: 'switch', checked: value === true });
    return { element, inline: true, get: () => element.checked };
  }
  if (field.type === 'number') {
    const element = h('input', { ...common, type: 'number', step: 'any', value: String(value ?? '') });
    return { element, get: () => (element.value === '' ? field.default ?? 0 : Number(element.value)) };
  }
  if (field.widget === 'password') {
    const element = h('input', { ...common, type: 'password', value: value ?? '', autocomplete: 'new-password' });
    // The host shows a mask, not the value: the first key begins a new one.
    element.addEventListener('focus', () => { if (element.value === MASK) element.select(); });
    return { element, get: () => element.value };
  }
  const element = field.type === 'textarea' || field.type === 'text' || field.widget === 'textarea'
    ? h('textarea', { ...common, rows: '3', value: value ?? '' })
    : h('input', { ...common, type: 'text', value: value ?? '' });
  return { element, get: () => element.value };
}

/** Chips, each with its ×, and a row to add one; with options only those can be added. */
function listOf(field, id, value, options) {
  let items = [...value];
  const chips = h('ul', { class: 'chips plain', 'aria-labelledby': `${id}-label` });
  const input = options.length
    ? h('select', { id }, h('option', { value: '' }, 'add…'), options.map((one) => h('option', { value: String(one.value) }, one.label)))
    : h('input', { id, type: 'text', autocomplete: 'off', placeholder: field.placeholder || 'add…', list: field.options_endpoint ? `${id}-some` : null });
  const changed = () => { drawChips(); input.dispatchEvent(new CustomEvent('list-changed', { bubbles: true })); };
  const add = () => {
    const text = input.value.trim();
    if (!text) return;
    const one = options.find((option) => String(option.value) === text)?.value ?? text;
    if (!items.includes(one)) items.push(one);
    input.value = '';
    changed();
  };
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') { event.preventDefault(); add(); }
    if (event.key === 'Backspace' && !input.value && items.length && !options.length) { items.pop(); changed(); }
  });
  if (options.length) input.addEventListener('change', add);
  const drawChips = () => fill(chips, items.map((item, index) => h('li', {}, String(item), button('×', () => { items = items.filter((_, at) => at !== index); changed(); input.focus(); }, 'quiet', { 'aria-label': `Take away ${item}` }))));
  drawChips();
  const some = field.options_endpoint ? h('datalist', { id: `${id}-some` }) : null;
  if (some) suggestions(field).then((words) => fill(some, words.map((word) => h('option', { value: word }))));
  return { element: h('div', { class: 'list-field' }, chips, h('div', { class: 'row-head' }, input, !options.length && button('Add', add, 'small')), some), described: input, get: () => items };
}

/** What a route of the plugin suggests; only its own paths are asked, and a failure leaves the box without suggestions. */
async function suggestions(field) {
  if (!/^\/(?!\/)/.test(field.options_endpoint)) return [];
  try {
    const answer = await get(field.options_endpoint);
    const found = field.data_key ? field.data_key.split('.').reduce((part, key) => part?.[key], answer) : answer;
    return (Array.isArray(found) ? found : []).map((one) => (one && typeof one === 'object' ? one[field.value_field ?? 'name'] : one)).filter((one) => one !== undefined).map(String);
  } catch { return []; }
}

