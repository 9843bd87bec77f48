// A form made from a tool's JSON Schema, and its values as the arguments of a call. What it has no control for becomes a box
// for JSON, so every schema can be filled.

import { h } from './dom.js';

/** One schema with its `$ref` followed and the null of an optional type left out. */
function plain(schema, root, depth = 0) {
  let it = schema ?? {};
  if (typeof it !== 'object') return {};
  if (it.$ref?.startsWith('#/') && depth < 8) {
    const target = it.$ref.slice(2).split('/').reduce((at, key) => at?.[key.replace(/~1/g, '/').replace(/~0/g, '~')], root);
    it = { ...plain(target, root, depth + 1), ...it, $ref: undefined };
  }
  const some = it.anyOf ?? it.oneOf;
  if (some && !it.type) {
    const real = some.map((one) => plain(one, root, depth + 1)).filter((one) => one.type !== 'null');
    if (real.length === 1) it = { ...real[0], ...it, anyOf: undefined, oneOf: undefined };
    else if (real.every((one) => one.const !== undefined)) it = { ...it, enum: real.map((one) => one.const) };
  }
  if (Array.isArray(it.type)) {
    const types = it.type.filter((type) => type !== 'null');
    it = { ...it, type: types.length === 1 ? types[0] : undefined };
  }
  return it;
}

/** What fits, in a few letters: `2..1000`, `up to 80 letters`. */
function limits(schema) {
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const most = schema.maximum ?? schema.exclusiveMaximum;
  if (least !== undefined && most !== undefined) return `${least}..${most}`;
  if (least !== undefined) return `from ${least}`;
  if (most !== undefined) return `up to ${most}`;
  if (schema.maxLength !== undefined && schema.maxLength < 10_000) return `up to ${schema.maxLength} letters`;
  if (schema.type === 'array') return schema.maxItems ? `up to ${schema.maxItems}, one a line` : 'one a line';
  return '';
}

const wrong = (message) => ({ wrong: message });
const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** A whole number too large for the language of pages stays exact where the browser can write it. */
function numberOf(text) {
  const number = Number(text);
  const whole = /^-?\d+$/.test(text);
  if (whole && !Number.isSafeInteger(number) && JSON.rawJSON) return JSON.rawJSON(text);
  return number;
}

/** A control: its element, `get()` (the value, undefined for none, or what is wrong) and `set(value)`. */
function control(schema, id, required) {
  const { type } = schema;
  const common = { id, name: id, autocomplete: 'off' };
  const choices = schema.enum ?? (schema.const !== undefined ? [schema.const] : null);
  if (choices || (type === 'boolean' && !required && schema.default === undefined)) {
    const values = choices ?? [true, false];
    const none = !required || schema.default === undefined;
    const element = h('select', common, none && h('option', { value: '' }, required ? 'choose…' : '—'),
      values.map((value, index) => h('option', { value: String(index) }, choices ? shown(value) : value ? 'yes' : 'no')));
    return {
      element,
      get: () => (element.value === '' ? undefined : values[Number(element.value)]),
      set: (value) => { const index = values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value)); element.value = index < 0 ? (none ? '' : '0') : String(index); },
    };
  }
  if (type === 'boolean') {
    const element = h('input', { ...common, type: 'checkbox', role: 'switch' });
    return { element, inline: true, get: () => element.checked, set: (value) => { element.checked = value === true; } };
  }
  if (type === 'integer' || type === 'number') {
    const element = h('input', { ...common, type: 'number', inputmode: type === 'integer' ? 'numeric' : 'decimal', step: type === 'integer' ? '1' : 'any', min: schema.minimum, max: schema.maximum });
    return {
      element,
      get() {
        if (element.value === '') return element.validity.badInput ? wrong('this is no number') : undefined;
        if (element.validity.stepMismatch) return wrong('a whole number');
        return numberOf(element.value);
      },
      set: (value) => { element.value = value ?? ''; },
    };
  }
  const items = plain(schema.items, schema);
  if (type === 'array' && ['string', 'integer', 'number'].includes(items.type)) {
    const element = h('textarea', { ...common, rows: '2', spellcheck: 'false' });
    return {
      element,
      get() {
        const lines = element.value.split('\n').map((line) => line.trim()).filter(Boolean);
        if (!lines.length) return required ? [] : undefined;
        const values = items.type === 'string' ? lines : lines.map(numberOf);
        return values.some((value) => Number.isNaN(value)) ? wrong('a number on each line') : values;
      },
      set: (value) => { element.value = Array.isArray(value) ? value.map(shown).join('\n') : ''; },
    };
  }
  if (type === 'string') {
    const short = schema.maxLength !== undefined && schema.maxLength <= 60;
    const element = short || schema.format
      ? h('input', { ...common, type: 'text', maxlength: schema.maxLength })
      : h('textarea', { ...common, rows: '1', class: 'grows' });
    return { element, get: () => (element.value === '' && !required ? undefined : element.value), set: (value) => { element.value = value ?? ''; } };
  }
  const element = h('textarea', { ...common, rows: '3', class: 'code', spellcheck: 'false', placeholder: type === 'array' ? '[ ]' : type === 'object' ? '{ }' : 'JSON' });
  return {
    element,
    get() {
      const text = element.value.trim();
      if (text === '') return undefined;
      try { return JSON.parse(text); } catch (error) { return type ? wrong(`this is no JSON: ${error.message}`) : text; }
    },
    set: (value) => { element.value = value === undefined ? '' : JSON.stringify(value, null, 1); },
  };
}

/** A form for an object's schema. `read()` gives `{values, wrong}`; `set(values)` fills it, `touched()` what a person typed. */
export function formOf(schema, { prefix = 'arg', root = schema } = {}) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, raw]) => {
    const it = plain(raw, root);
    const id = `${prefix}-${name}`;
    const needed = required.has(name);
    const note = h('p', { class: 'wrong', id: `${id}-wrong`, hidden: true });
    if (it.type === 'object' && it.properties) {
      const inner = formOf(it, { prefix: id, root });
      return {
        name, needed, inner, note,
        element: h('fieldset', {}, h('legend', {}, name), it.description && h('p', { class: 'help' }, it.description), inner.fields.map((field) => field.element)),
      };
    }
    const made = control(it, id, needed);
    if (it.default !== undefined) made.set(it.default);
    const help = it.description ? h('p', { class: 'help', id: `${id}-help`, title: it.description }, it.description) : null;
    made.element.setAttribute('aria-describedby', `${help ? `${id}-help ` : ''}${id}-wrong`);
    if (needed) made.element.setAttribute('aria-required', 'true');
    const field = { ...made, input: made.element, name, needed, note, touched: false, initial: it.default };
    made.element.addEventListener('input', () => { field.touched = true; mark(field, null); });
    field.element = h('div', { class: made.inline ? 'field inline' : 'field', data: { field: name } },
      h('label', { for: id }, name, !needed && h('span', { class: 'soft' }, ' optional')),
      h('span', { class: 'limits soft' }, limits(it)), made.element, help, note);
    return field;
  });
  return {
    fields,
    element: fields.map((field) => field.element),
    read() {
      const values = {};
      const bad = [];
      for (const field of fields) {
        if (field.inner) {
          const inner = field.inner.read();
          bad.push(...inner.wrong);
          if (field.needed || Object.keys(inner.values).length) values[field.name] = inner.values;
          continue;
        }
        let value = field.get();
        if (value === undefined && field.needed) value = wrong('this is needed');
        const message = value?.wrong && Object.keys(value).length === 1 ? value.wrong : null;
        mark(field, message);
        if (message) bad.push(field);
        else if (value !== undefined) values[field.name] = value;
      }
      return { values, wrong: bad };
    },
    set(values) {
      for (const field of fields) {
        if (field.inner) field.inner.set(values?.[field.name] ?? {});
        else { field.set(values && field.name in values ? values[field.name] : undefined); field.touched = true; mark(field, null); }
      }
    },
    touched: () => Object.fromEntries(fields.filter((field) => field.touched).map((field) => [field.name, field.get()]).filter(([, value]) => value !== undefined && !value?.wrong)),
    /** Puts values back that a person typed before the form was made anew. */
    restore(values) {
      for (const field of fields) if (!field.inner && field.name in values) { field.set(values[field.name]); field.touched = true; }
    },
  };
}

function mark(field, message) {
  field.note.textContent = message ?? '';
  field.note.hidden = !message;
  if (message) field.input.setAttribute('aria-invalid', 'true');
  else field.input.removeAttribute('aria-invalid');
}
