// The right column: a tool's form, Run with its progress and Cancel, the result's place, and the recent calls.
// How a result looks is result.js.

import { store, on, get, del, stream, at, query, pluginOf, toolsOf, randomId } from './api.js';
import { h, $, announce, button, calm, capital, empty, failed, fill, pref, sync, took, toggle, trouble, when } from './dom.js';
import { formOf } from './form.js';
import { act, isDirty } from './workshop.js';
import { open } from './main.js';

/** A call that ends sooner than this shows no bar: it would only blink. */
const SOON = 150;

let column;
let form = null;
let made = '';
/** What was typed for each tool, and its last result, while the page lives. */
const typed = new Map();
const last = new Map();
let running = null;
/** Whether the first form has come: with it the page is ready, and Enter runs. */
let fresh = false;

export function start(element) {
  column = element;
}

const toolNow = () => store.tools.find((tool) => tool.name === store.tool);

// ── The tool and its form ───────────────────────────────────────────────────────────────────────────────────────────────

function draw() {
  const tool = toolNow();
  const status = pluginOf(store.plugin);
  const key = tool ? `${tool.name} ${tool.description} ${JSON.stringify(tool.parameters)} ${tool.offered} ${toolsOf(tool.plugin).map((one) => one.name)}` : `- ${status?.name} ${status?.status}`;
  if (key === made) return;
  made = key;
  if (!tool) return drawNone(status);
  const before = form?.tool === tool.name ? form.touched() : typed.get(tool.name) ?? {};
  const focused = column.contains(document.activeElement) ? document.activeElement.id : null;
  form = { ...formOf(tool.parameters), tool: tool.name };
  form.restore(before);
  const siblings = toolsOf(tool.plugin);
  fill(column,
    h('div', { class: 'head' },
      tool.emoji && h('span', { class: 'emoji', 'aria-hidden': 'true' }, tool.emoji),
      siblings.length > 1
        ? h('h2', {}, h('label', { class: 'sr', for: 'tool-select' }, 'Tool'), chooser(siblings, tool))
        : h('h2', { id: 'tool-name', title: tool.name }, tool.name),
      h('span', { class: 'grow' }),
      h('button', { type: 'submit', id: 'run', form: 'args', class: 'primary', 'aria-disabled': running ? 'true' : null, 'aria-keyshortcuts': 'Control+Enter Meta+Enter' }, 'Run ', h('span', { 'aria-hidden': 'true' }, '⏎'))),
    h('div', { class: 'scroll' },
      h('p', { class: 'about', title: tool.description }, tool.description),
      !tool.offered && h('p', { class: 'note', data: { kind: 'look' } }, tool.hidden ? 'Hidden: models get it only by name, in a saved toolset.' : 'A setting switches this tool off: models do not get it.'),
      h('form', { id: 'args', novalidate: true, autocomplete: 'off', onsubmit: (event) => { event.preventDefault(); run(); }, onkeydown: submitByEnter, oninput: () => typed.set(tool.name, form.touched()) },
        form.element.length ? form.element : h('p', { class: 'soft' }, 'It takes no arguments.')),
      h('div', { class: 'meta', id: 'meta' }),
      h('div', { id: 'result', class: 'result' }),
      h('section', { class: 'recent', 'aria-labelledby': 'recent-title' },
        h('div', { class: 'row-head' }, h('h3', { id: 'recent-title' }, 'recent calls'), h('span', { class: 'grow' }),
          toggle('replay on save', pref.get('replay', false), (checked) => pref.set('replay', checked), { id: 'replay-on-save' })),
        h('ul', { id: 'recent', class: 'plain' }))));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  else if (document.activeElement === document.body && !fresh) $('run').focus({ preventScroll: true });
  fresh = true;
  showLast();
  recent();
}

function chooser(tools, now) {
  const choice = h('select', { id: 'tool-select' }, tools.map((tool) => h('option', { value: tool.name }, tool.name)));
  choice.value = now.name;
  choice.addEventListener('change', () => { location.hash = `#/workshop/${encodeURIComponent(now.plugin)}/${encodeURIComponent(choice.value)}`; });
  return choice;
}

function drawNone(status) {
  form = null;
  const words = !status ? empty('Nothing is chosen.')
    : !status.enabled ? empty(`${status.name} is switched off, so it has no tools.`, button('Switch it on', () => act(status.name, 'enable'), 'primary'))
      : status.live ? empty('This plugin has no tool of its own: it serves others by its routes or its agents.')
        : empty('No version of this has loaded yet. Mend the script: saving makes it live.');
  fill(column, h('div', { class: 'head' }, h('h2', {}, status?.name ?? '')), words);
}

/** Enter runs; with Shift, or where several lines are wanted, it breaks the line. */
function submitByEnter(event) {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.ctrlKey || event.metaKey) return;
  if (event.target.matches('textarea.grows')) { event.preventDefault(); run(); }
}

/** Fills the form with the arguments of a call. */
export function use(values) {
  form?.set(values);
  typed.set(store.tool, form?.touched() ?? {});
}

// ── Run ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function run() {
  if (!form || running) return;
  const { values, wrong } = form.read();
  if (wrong.length) {
    wrong[0].input.focus();
    return announce(`${wrong[0].name}: ${wrong[0].note.textContent}`);
  }
  const tool = store.tool;
  await follow(tool, (hear, call, signal) => stream('/api/call', { tool, arguments: values, call }, hear, signal));
}

/** Runs a call (`ask`), shows how it goes on and what it gives. */
async function follow(tool, ask, then) {
  const call = `page-${randomId()}`;
  const mine = { tool, call, abort: new AbortController(), started: performance.now(), words: '', logs: [] };
  running = mine;
  busy(true);
  $('result')?.classList.add('stale');
  const bar = setTimeout(() => drawProgress(mine), SOON);
  try {
    const answer = await ask((name, data) => {
      if (name === 'started') mine.call = data.call;
      if (name === 'progress') progressed(mine, data);
      if (name === 'log') mine.logs.push(data);
    }, call, mine.abort.signal);
    const shown = then ? then(answer) : { result: answer };
    shown.logs = mine.logs;
    if (!shown.result.ok) shown.said = [mine.said, mine.count].filter(Boolean).join(', ');
    last.set(tool, shown);
  } catch (error) {
    const cancelled = error.name === 'AbortError';
    last.set(tool, { error: cancelled ? { message: 'the call was cancelled', hint: mine.said && `the last it said was: ${mine.said}` } : error });
  }
  clearTimeout(bar);
  clearInterval(mine.clock);
  running = null;
  busy(false);
  // Cancel goes with the bar.
  if ($('meta')?.contains(document.activeElement)) $('run').focus({ preventScroll: true });
  if (store.tool === tool) await showLast(true);
}

/** A button that is disabled would lose the focus, and the next Enter would run nothing. */
const busy = (is) => $('run')?.setAttribute('aria-disabled', String(is));

function progressed(mine, data) {
  if (data.text) { mine.said = data.text; if (!mine.stopping) mine.words = data.text; }
  const { done, total } = data;
  if (done !== undefined) {
    mine.share = total > 0 ? Math.min(1, done / total) : undefined;
    mine.count = total > 0 ? `${done} of ${total}` : String(done);
  }
  mine.update?.();
}

function drawProgress(mine) {
  if (running !== mine || store.tool !== mine.tool) return;
  const bar = h('progress', { max: '1', 'aria-label': 'How far it is' });
  const words = h('span', { class: 'words' });
  const clock = h('span', { class: 'clock' });
  fill($('meta'), bar, words, clock, button('Cancel', () => cancel(mine), 'small', { id: 'cancel' }));
  mine.update = () => {
    if (mine.share === undefined) bar.removeAttribute('value'); else bar.value = mine.share;
    words.textContent = mine.words || (mine.count ?? 'running');
    words.title = mine.words;
    clock.textContent = `${((performance.now() - mine.started) / 1000).toFixed(1)} s`;
  };
  mine.update();
  mine.clock = setInterval(mine.update, 100);
  intoSight();
  announce(`${mine.tool} is running.`);
}

/** Asks the host to stop it. The answer says what had been done; where none comes within a second, we go on without. */
async function cancel(mine) {
  mine.stopping = true;
  mine.words = 'stopping';
  mine.update?.();
  setTimeout(() => { if (running === mine) mine.abort.abort(); }, 1000);
  try { await del(at('calls', mine.call)); } catch { mine.abort.abort(); }
}

// ── The result ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Brings what is new into sight where a long form has pushed it out. */
function intoSight() {
  const scroll = column.querySelector('.scroll');
  const below = $('meta').getBoundingClientRect().bottom - scroll.getBoundingClientRect().bottom;
  if (below > -96) scroll.scrollTop += below + Math.min(320, scroll.clientHeight * 0.6);
}

async function showLast(isNew = false) {
  const place = $('result');
  const shown = last.get(store.tool);
  if (!place) return;
  place.classList.remove('stale');
  if (running?.tool === store.tool) return drawProgress(running);
  if (!shown) {
    fill($('meta'));
    return fill(place, empty('Run it, and what comes back stands here.'));
  }
  if (shown.error) {
    fill($('meta'), h('span', { class: 'bad' }, 'not run'));
    fill(place, trouble(shown.error));
    if (isNew) announce(shown.error.message);
    return;
  }
  const { result } = shown;
  const status = pluginOf(result.plugin);
  fill($('meta'), h('span', { class: result.ok ? 'good' : 'bad' }, result.ok ? '✓ ok' : `✗ ${result.error?.code ?? 'failed'}`),
    h('span', { class: 'grow' }), h('span', { class: 'soft', title: `${(result.operations ?? 0).toLocaleString('en')} operations` }, `${took(result.duration_ms)} · gen ${result.generation}`));
  const module = await import('./result.js');
  if (last.get(store.tool) !== shown) return;
  await module.show(place, shown);
  if (status?.disk && status.live === result.generation) place.prepend(h('p', { class: 'note', data: { kind: 'look' } }, `From version ${status.live}: version ${status.disk} on disk ${status.waiting ? 'waits for a yes' : 'failed'}.`));
  else if (isNew && isDirty() && store.open.plugin === result.plugin) place.prepend(h('p', { class: 'note' }, `It ran version ${result.generation}, without what is not saved yet.`));
  if (!pref.get('hinted', false)) place.append(h('p', { class: 'hint' }, innerWidth > 640 ? 'Edit the script at left; saving makes it live.' : 'Edit the script; saving makes it live.'));
  if (isNew) intoSight();
  if (isNew) announce(result.ok ? `Result: ${result.text.slice(0, 200)}` : `Failed: ${capital(result.error?.message ?? result.text.slice(0, 200))}`);
}

// ── Recent calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

const recent = calm(30, async () => {
  const tool = store.tool;
  const list = $('recent');
  if (!tool || !list) return;
  let calls = [];
  try { calls = (await get(`/api/journal${query({ tool, limit: 8 })}`)).calls; } catch { /* the list is a convenience; the journal itself says what is wrong */ }
  if (tool !== store.tool || !list.isConnected) return;
  list.calls = calls;
  sync(list, calls.length ? calls.map((call) => [call.id, () => line(call)]) : [['none', () => h('li', { class: 'soft' }, 'None yet.')]]);
});

function line(call) {
  return h('li', { class: 'call', data: { call: call.id } },
    h('a', { href: `#/journal/${encodeURIComponent(call.id)}`, title: `${call.summary ?? ''}\n${call.door ?? ''} · version ${call.generation}` },
      h('span', { class: 'soft' }, when(call.at)), ' ', h('span', { class: call.ok ? 'good' : 'bad' }, call.ok ? 'ok' : call.code ?? 'failed'), ' ', h('span', { class: 'summary' }, call.summary ?? '')),
    button('↻ replay', () => open('replay', call.id), 'quiet small', { 'aria-label': `Replay the call of ${when(call.at)}` }));
}

on('host:call_ended', (event) => { if (event.tool === store.tool) recent(); });
on('host:journal_cleared', () => recent());
on('anew', () => recent());

/** A save went live: the last call runs again, and the two results stand side by side. */
on('host:plugin_live', async (event) => {
  pref.set('hinted', pref.get('hinted', false) || event.plugin === store.open?.plugin);
  if (event.plugin !== store.plugin || !pref.get('replay', false) || running || isDirty()) return;
  const call = $('recent')?.calls?.find((one) => one.tool === store.tool);
  if (!call) return;
  const tool = store.tool;
  await follow(tool, (hear, _, signal) => stream(at('journal', call.id, 'replay'), {}, hear, signal), (answer) => ({ result: answer.now, then: answer.then, diff: answer.diff }));
});

on('selected', () => { if (column) draw(); });
on('tools', () => { if (column) draw(); });
on('plugins', (name) => { if (column && (!toolNow() || name === store.plugin)) draw(); });
