// What belongs to the host: who may sign in, toolsets, and what it says of itself.

import { store, get, post, put, del, at, keep, refresh } from './api.js';
import { h, announce, button, failed, fill, many, pref, sentence, toast, trouble, when } from './dom.js';
import { ask, sheet } from './sheet.js';
import { theme } from './main.js';

export async function show(place, name) {
  const draw = { '-access': access, '-toolsets': toolsets, '-removed': removed, '-about': about }[name];
  if (!draw) return fill(place, h('p', {}, 'There is nothing of this name.'));
  try { await draw(place); } catch (error) { fill(place, trouble(error, () => show(place, name))); }
}

// ── Who may sign in ─────────────────────────────────────────────────────────────────────────────────────────────────────

async function access(place) {
  const [session, tokens] = await Promise.all([get('/api/session'), get('/api/tokens')]);
  const again = () => access(place);
  const name = h('input', { type: 'text', id: 'token-name', placeholder: 'for what: desktop, backup…', size: '28', autocomplete: 'off', maxlength: '64' });
  fill(place,
    h('h2', {}, 'Sign-in and tokens'),
    h('section', {}, h('h3', {}, 'You'), h('div', { class: 'row-head wrap' }, h('p', {}, session.by === 'token' ? `By the token ${session.name}.` : `Signed in${session.expires_at ? ` until ${when(session.expires_at)}` : ''}.`),
      button('Sign out', async () => { try { await del('/api/session'); location.reload(); } catch (error) { failed(error); } }, 'small'))),
    h('section', {}, h('h3', {}, 'Password'), h('p', { class: 'soft' }, session.password_set ? 'A password opens this page beside the links that the terminal prints.' : 'None is set: only the links that the terminal prints open this page.'),
      password(session.password_set, again)),
    h('section', {}, h('h3', {}, 'Tokens for programs'), h('p', { class: 'soft' }, 'A program sends one as Authorization: Bearer. It may do what you may; take it back when it is no longer needed.'),
      h('table', {}, h('thead', {}, h('tr', {}, ['name', 'made', 'last used', ''].map((word) => h('th', {}, word || h('span', { class: 'sr' }, 'take back'))))),
        h('tbody', {}, tokens.length ? tokens.map((token) => h('tr', { data: { token: token.id } }, h('td', {}, token.name), h('td', {}, when(token.created_at)), h('td', {}, token.last_used_at ? when(token.last_used_at) : 'never'),
          h('td', {}, button('Take back', async () => {
            if (!await ask(`Take back the token ${token.name}?`, ['What uses it is refused from now on.'], 'Take it back')) return;
            try { await del(at('tokens', token.id)); announce('Taken back.'); again(); } catch (error) { failed(error); }
          }, 'small')))) : h('tr', {}, h('td', { colspan: '4', class: 'soft' }, 'None yet.')))),
      h('form', { class: 'row-head wrap', onsubmit: async (event) => {
        event.preventDefault();
        if (!name.value.trim()) return name.focus();
        try {
          const made = await post('/api/tokens', { name: name.value.trim() });
          await reveal(made);
          again();
        } catch (error) { failed(error); }
      } }, h('label', { class: 'sr', for: 'token-name' }, 'Name of a new token'), name, h('button', { type: 'submit', class: 'small' }, 'Make a token'))));
}

const reveal = (made) => {
  const text = h('input', { type: 'text', id: 'token-text', class: 'grow', value: made.token, readOnly: true, 'aria-label': 'The token', onfocus: (event) => event.target.select() });
  return sheet({ title: `Token ${made.name}`, id: 'token', body: [h('p', {}, 'It is shown this once; the host keeps only a hash of it.'), h('p', { class: 'row-head' }, text, button('Copy', async () => {
    try { await navigator.clipboard.writeText(made.token); announce('Copied.'); } catch { text.focus(); text.select(); }
  }, 'small'))], actions: [['I have it', true, 'primary']] });
};

function password(isSet, again) {
  const current = isSet && h('input', { type: 'password', id: 'password-now', autocomplete: 'current-password' });
  const fresh = h('input', { type: 'password', id: 'password-new', autocomplete: 'new-password', minlength: '10', 'aria-describedby': 'password-help' });
  const said = h('p', { class: 'wrong', role: 'alert' });
  // Who has just come by a link needs no present one.
  const known = () => (current?.value ? { current: current.value } : {});
  return h('form', { class: 'fields', novalidate: true, onsubmit: async (event) => {
    event.preventDefault();
    try {
      await put('/api/password', { ...known(), new: fresh.value });
      toast('The password is set.', { kind: 'good' });
      again();
    } catch (error) { said.textContent = sentence(error); }
  } },
  current && h('div', { class: 'field' }, h('label', { for: 'password-now' }, 'The present one'), current),
  h('div', { class: 'field' }, h('label', { for: 'password-new' }, isSet ? 'A new one' : 'A password'), fresh, h('p', { class: 'help', id: 'password-help' }, 'At least 10 characters. A new one signs everybody else out.')), said,
  h('div', { class: 'row-head actions' }, h('button', { type: 'submit' }, isSet ? 'Change it' : 'Set it'),
    isSet && button('Have none', async () => {
      if (!await ask('Have no password?', ['Only the links that the terminal prints open this page then.'], 'Have none')) return;
      try { await del('/api/password', { body: known() }); again(); } catch (error) { said.textContent = sentence(error); }
    }, 'quiet')));
}

// ── Toolsets ────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function toolsets(place) {
  const { toolsets: all } = await get('/api/toolsets');
  const again = () => toolsets(place);
  const name = h('input', { type: 'text', id: 'set-name', placeholder: 'name', autocomplete: 'off' });
  const row = (one) => h('li', { data: { toolset: one.name } }, h('div', { class: 'row-head' }, h('strong', {}, one.name), h('span', { class: 'soft' }, `${one.kind} · ${many(one.tools.length, 'tool')} · ${many(one.tokens, 'token')}`), h('span', { class: 'grow' }),
    one.kind === 'saved' && [button('Change', () => edit(one, again), 'small'), button('Delete', async () => {
      try {
        await del(at('toolsets', one.name));
        toast(`The toolset ${one.name} is deleted.`, { action: 'Undo', run: async () => { try { await put(at('toolsets', one.name), { words: one.words }); again(); } catch (error) { failed(error); } } });
        again();
      } catch (error) { failed(error); }
    }, 'quiet small')]), h('p', { class: 'soft' }, (one.words ?? one.tools).join(' ')));
  const saved = all.filter((one) => one.kind === 'saved');
  fill(place, h('h2', {}, 'Toolsets'), h('p', { class: 'soft' }, 'A toolset is what a model gets: categories, plugins and single tools, by name.'),
    h('section', {}, h('h3', {}, 'Yours'), saved.length ? h('ul', { class: 'plain sets' }, saved.map(row)) : h('p', { class: 'soft' }, 'None yet.'),
      h('form', { class: 'row-head', onsubmit: (event) => { event.preventDefault(); if (name.value.trim()) edit({ name: name.value.trim(), words: [], tools: [] }, again); else name.focus(); } },
        h('label', { class: 'sr', for: 'set-name' }, 'Name of a new toolset'), name, h('button', { type: 'submit', class: 'small' }, 'Make one'))),
    h('section', {}, h('h3', {}, 'Of the host'), h('ul', { class: 'plain sets' }, all.filter((one) => one.kind !== 'saved').map(row))));
}

/** Picks words from what there is: categories, plugins, tools. */
async function edit(one, again) {
  const words = new Set(one.words ?? []);
  const group = (title, names) => names.length > 0 && h('fieldset', {}, h('legend', {}, title), h('div', { class: 'picks' }, names.map((name) => h('label', {}, h('input', { type: 'checkbox', checked: words.has(name), onchange: (event) => { if (event.target.checked) words.add(name); else words.delete(name); } }), ' ', name))));
  const categories = [...new Set(store.tools.map((tool) => tool.category).filter(Boolean))].sort();
  const plugins = store.plugins.filter((status) => status.tools.length).map((status) => status.name);
  const tools = store.tools.map((tool) => tool.name).sort();
  const rest = [...words].filter((word) => ![...categories, ...plugins, ...tools].includes(word));
  await sheet({
    title: `Toolset ${one.name}`, wide: true, id: 'toolset',
    body: [group('Categories', categories), group('Plugins', plugins), group('Tools', tools), group('Other words', rest)],
    actions: [['Cancel', undefined], ['Save', true, 'primary']],
    onsubmit: async () => { try { await put(at('toolsets', one.name), { words: [...words] }); return null; } catch (error) { return sentence(error); } },
  });
  again();
}

// ── Uninstalled ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function removed(place) {
  const { removed: all } = await get('/api/removed');
  const bring = async (name) => {
    try {
      keep(await post(at('plugins', name, 'rollback'), {}));
      await refresh();
      toast(`${name} is back.`, { kind: 'good', action: 'Open it', run: () => { location.hash = `#/workshop/${encodeURIComponent(name)}`; } });
      await removed(place);
    } catch (error) { failed(error, `${name} was not brought back`); }
  };
  fill(place, h('h2', {}, 'Uninstalled'),
    h('p', { class: 'soft' }, all.length ? 'Each is kept for 30 days, with its settings and what it may do.' : 'Nothing was uninstalled in the last 30 days.'),
    h('ul', { class: 'plain sets' }, all.map((one) => h('li', { class: 'row-head', data: { removed: one.name } }, h('strong', {}, one.name),
      h('span', { class: 'soft' }, `${one.replaced ? 'replaced' : 'uninstalled'} ${when(one.removed_at)}, kept until ${when(one.undo_until)}`), h('span', { class: 'grow' }), button('Bring it back', () => bring(one.name), 'small')))));
}

// ── About ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

async function about(place) {
  const host = await get('/api/host');
  const choice = h('select', { id: 'theme', onchange: (event) => theme(event.target.value) }, [['system', 'as the system'], ['light', 'light'], ['dark', 'dark']].map(([value, words]) => h('option', { value }, words)));
  choice.value = pref.get('theme', 'system');
  fill(place, h('h2', {}, 'This host'),
    h('dl', { class: 'facts' }, [['version', host.version], ['running since', when(host.started_at)], ['plugins', String(host.plugins)], ['tools', String(host.tools)], ['calls', String(host.calls)], ['of them failed', String(host.failures)]].map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    h('section', {}, h('h3', {}, 'This page'), h('div', { class: 'field' }, h('label', { for: 'theme' }, 'Colours'), choice)),
    h('p', { class: 'soft' }, 'Its address, limits and models are in user/lapidary.toml; ', h('a', { href: '/api/openapi.json' }, 'the API describes itself'), '.'));
}
