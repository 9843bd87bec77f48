// The journal: every call with what it was given, what it gave, and which version ran; filtered, opened, replayed.

import { store, on, get, at, query } from './api.js';
import { h, button, calm, empty, fill, sync, toast, took, toggle, trouble, when, size } from './dom.js';
import { logLines, show as showResult } from './result.js';
import { goToFinding, visit } from './workshop.js';
import { use } from './run.js';
import { open } from './main.js';

const wanted = { tool: '', failed: false };
let place = null;
let calls = [];
let next = null;
let chosen = null;

export async function show(element, [id]) {
  if (!place) build(element);
  options();
  await fetchCalls();
  choose(id ?? null);
}

function build(element) {
  place = {
    tool: h('select', { id: 'journal-tool', onchange: (event) => { wanted.tool = event.target.value; fetchCalls(); } }),
    list: h('ul', { class: 'plain calls', id: 'journal-list', 'aria-label': 'Calls' }),
    more: h('div', { class: 'more' }),
    detail: h('div', { class: 'detail scroll', id: 'journal-call' }),
  };
  place.columns = h('div', { class: 'two' },
    h('div', { class: 'col' }, h('div', { class: 'head' }, h('h2', { class: 'sr' }, 'Journal'), h('label', { class: 'sr', for: 'journal-tool' }, 'Tool'), place.tool,
      toggle('failed only', wanted.failed, (checked) => { wanted.failed = checked; fetchCalls(); }, { id: 'journal-failed' })),
    h('div', { class: 'scroll' }, place.list, place.more)),
    h('div', { class: 'col sheet-col' }, place.detail));
  fill(element, place.columns);
}

function options() {
  const names = [...new Set([...store.tools.map((tool) => tool.name), ...calls.map((call) => call.tool)])].sort();
  fill(place.tool, h('option', { value: '' }, 'all tools'), names.map((name) => h('option', { value: name }, name)));
  place.tool.value = wanted.tool;
}

const filter = () => ({ tool: wanted.tool, failed: wanted.failed });

async function fetchCalls(more = false) {
  try {
    const answer = await get(`/api/journal${query({ ...filter(), before: more ? next : null, limit: 50 })}`);
    calls = more ? [...calls, ...answer.calls] : answer.calls;
    next = answer.next ?? null;
    drawList();
  } catch (error) { fill(place.more, trouble(error, () => fetchCalls(more))); }
}

function drawList() {
  sync(place.list, calls.map((call) => [`${call.id} ${call.id === chosen}`, () => h('li', {}, h('a', { class: 'item', href: `#/journal/${encodeURIComponent(call.id)}`, 'aria-current': call.id === chosen ? 'true' : null, data: { call: call.id } },
    h('span', { class: 'soft at' }, when(call.at)), h('span', { class: 'name' }, call.tool), h('span', { class: call.ok ? 'good' : 'bad' }, call.ok ? 'ok' : call.code ?? 'failed'),
    h('span', { class: 'soft summary' }, call.summary ?? '')))]));
  const filtered = wanted.tool || wanted.failed;
  fill(place.more, !calls.length && (filtered
    ? empty('No call fits.', button('Show all', () => { wanted.tool = ''; wanted.failed = false; place.tool.value = ''; document.getElementById('journal-failed').checked = false; fetchCalls(); }, 'small'))
    : empty('Nothing was called yet.', button('Run a tool', () => { location.hash = '#/workshop'; }, 'small'))),
  next && button('Earlier calls', () => fetchCalls(true), 'small'));
}

async function choose(id) {
  chosen = id;
  place.columns.dataset.pane = id ? 'detail' : 'list';
  drawList();
  if (!id) return fill(place.detail, empty(calls.length ? 'Choose a call to see what it was given and what it gave.' : ''));
  try {
    const call = await get(at('journal', id));
    if (chosen === id) draw(call);
  } catch (error) { if (chosen === id) fill(place.detail, trouble(error, () => choose(id))); }
}

function draw(call) {
  const body = h('div', { class: 'result' });
  const given = JSON.stringify(call.arguments ?? {}, null, 2);
  const facts = [
    ['when', when(call.at)], ['version', `${call.generation}${call.live_generation && call.live_generation !== call.generation ? `, now ${call.live_generation} is live` : ''}`], ['plugin', call.plugin],
    ['from', [...new Set([call.door, call.caller, call.chat])].filter(Boolean).join(', ')], ['took', took(call.duration_ms)], ['operations', call.operations?.toLocaleString('en')], ['memory', call.memory ? size(call.memory) : null],
  ].filter(([, value]) => value);
  fill(place.detail,
    h('div', { class: 'row-head' }, button('‹ all calls', () => { location.hash = '#/journal'; }, 'quiet small back'), h('h2', {}, call.tool), h('span', { class: call.ok ? 'good' : 'bad' }, call.ok ? '✓ ok' : `✗ ${call.code ?? call.error?.code ?? 'failed'}`), h('span', { class: 'grow' }),
      button('Replay', () => open('replay', call.id), 'primary', { id: 'journal-replay', data: { act: 'replay' }, disabled: call.masked }), button('To the Workshop', () => toWorkshop(call), '')),
    h('dl', { class: 'facts' }, facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
    call.masked && h('p', { class: 'note' }, 'A secret was taken out of the arguments, so it cannot run again as it was.'),
    call.cut?.length > 0 && h('p', { class: 'note' }, `Too long to be kept whole: ${call.cut.join(', ')}.`),
    h('h3', {}, 'arguments'), h('pre', { class: 'said json', tabindex: '0', 'aria-label': 'arguments' }, given),
    h('h3', {}, 'result'), body,
    call.diagnostic && h('p', { class: 'row-head after' }, button(`Go to ${call.diagnostic.file}:${call.diagnostic.line}`, () => goToFinding(call.diagnostic, call.plugin), 'small')),
    call.logs?.length > 0 && [h('h3', {}, 'log'), logLines(call.logs), call.logs_left_out > 0 && h('p', { class: 'soft' }, `${call.logs_left_out} more were left out.`)],
    call.progress?.length > 0 && h('details', {}, h('summary', {}, 'progress'), h('ol', { class: 'log plain' }, call.progress.map((one) => h('li', {}, h('span', { class: 'soft' }, `${took(one.at_ms ?? 0)} `), one.status ?? (one.total > 0 ? `${one.done} of ${one.total}` : String(one.done)))))));
  showResult(body, { result: { ...call, diagnostic: undefined } });
}

/** Opens the tool with these arguments in its form. */
async function toWorkshop(call) {
  if (!store.tools.some((tool) => tool.name === call.tool)) return toast(`${call.tool} is not there now.`, { kind: 'look' });
  await visit(call.plugin, call.tool);
  use(call.arguments);
}

const soon = calm(200, () => { if (place && document.body.dataset.view === 'journal') fetchCalls(); });
on('host:call_ended', soon);
on('host:journal_cleared', soon);
on('anew', soon);
