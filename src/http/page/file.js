// The open file and its disk: saving with the version that was edited, what to do when another version is there, a check of
// the text as it stands, and unsaved text that outlives the page.

import { store, tell, get, post, put, at, query, keep } from './api.js';
import { $, announce, failed, pref, toast, when } from './dom.js';
import * as editor from './editor.js';
import { draftKey, isDirty, notice, openFile, page, select, showProblems, strip } from './workshop.js';
import { open } from './main.js';

let saving = null;

// ── Saving ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

export function save() {
  saving ??= write().finally(() => { saving = null; });
  return saving;
}

async function write(base) {
  const file = store.open;
  const text = editor.text();
  if (!file || (!isDirty() && base === undefined)) return announce('Nothing to save.');
  if (!file.editable) return copyFirst(text);
  try {
    const answer = await put(at('plugins', file.plugin, 'source'), { path: file.path, text, base: base ?? file.version });
    file.version = answer.version;
    file.text = text;
    keptSafe(file);
    clearPressing();
    keep(answer.plugin);
    tell('file');
    if (store.open === file) showProblems();
    const bad = answer.plugin.diagnostics.find((one) => one.severity === 'error');
    announce(bad ? `Saved. It does not load: line ${bad.line}, ${bad.message}.${answer.plugin.live ? ` Version ${answer.plugin.live} goes on answering.` : ''}` : `Saved. ${answer.plugin.status}.`);
  } catch (error) {
    if (error.status === 409 && error.body?.current) return conflict(file, error.body.current);
    if (error.code === 'offline') return press('Not saved: the host does not answer. The text is kept in this browser.', ['Try again', save]);
    failed(error, 'not saved');
  }
}

/** What comes with Lapidary stays as it is; a copy of one's own takes its place, and gets the text. */
async function copyFirst(text) {
  const { plugin, path } = store.open;
  try {
    const status = await post(at('plugins', plugin, 'copy'), {});
    keep(status);
    pref.drop(draftKey());
    if (status.name !== plugin) await select(status.name);
    await openFile(status.name, path);
    if (!store.open?.editable) throw new Error(`the copy of ${plugin} cannot be edited either`);
    editor.show(text, { stay: true });
    toast(`${status.name} is your own now, in ${status.path}.`, { kind: 'good' });
    return write();
  } catch (error) { failed(error, 'no copy was made'); }
}

// ── Another version on the disk ─────────────────────────────────────────────────────────────────────────────────────────

/** The host said that the plugin changed: perhaps its open file did. */
export async function diskMayHaveChanged() {
  await saving;
  const file = store.open;
  if (!file) return;
  let current;
  try {
    current = await get(`${at('plugins', file.plugin, 'source')}${query({ path: file.path })}`);
  } catch (error) {
    if (error.status === 404) press(`${file.path} is gone from the disk. What you see is kept here.`, ['Save it again', () => write(null)]);
    return;
  }
  if (store.open !== file || current.version === file.version) return;
  if (!isDirty()) {
    Object.assign(file, current);
    editor.show(current.text, { stay: true });
    tell('file');
    showProblems();
    return announce(`${file.path} was read anew from the disk.`);
  }
  if (current.text === editor.text()) {
    Object.assign(file, current);
    return tell('file');
  }
  press('This file changed on the disk, and you have unsaved changes.', ['Look at both', () => conflict(file, current)]);
}

async function conflict(file, current) {
  press(`${file.path} changed on the disk meanwhile. Nothing was written.`, ['Look at both', () => conflict(file, current)]);
  const choice = await open('conflict', { path: file.path, mine: editor.text(), disk: current.text });
  if (store.open !== file || !choice) return;
  if (choice.take === 'theirs') {
    // Through the browser's own editing, so that its undo brings mine back.
    Object.assign(file, current);
    editor.insert(current.text, 0, editor.text().length);
    keptSafe(file);
    announce('The text of the disk is here. Undo brings yours back.');
  } else {
    Object.assign(file, { version: current.version, text: current.text });
    if (choice.take === 'merge') {
      editor.insert(choice.text, 0, editor.text().length);
      const first = choice.text.split('\n').findIndex((line) => line.startsWith('<<<<<<< '));
      editor.goTo(Math.max(0, first));
      announce('Both are in the text, between markers. Mend it, then save.');
    }
  }
  clearPressing();
  tell('file');
  // This may be part of a save, and another one would wait for that.
  if (choice.take === 'mine') await write(current.version);
}

function press(text, ...buttons) {
  $('strip').dataset.pressing = 'yes';
  strip(text, ...buttons);
}

function clearPressing() {
  delete $('strip').dataset.pressing;
  strip(null);
  notice();
}

// ── Unsaved text ────────────────────────────────────────────────────────────────────────────────────────────────────────

window.addEventListener('beforeunload', (event) => { if (isDirty() && !storageWorks()) event.preventDefault(); });
function storageWorks() { pref.set('probe', 1); return pref.get('probe', 0) === 1; }

const keptSafe = (file) => pref.drop(draftKey(file));

/** Offers unsaved text that was kept; what this very page left behind comes back by itself. */
export async function offerDraft() {
  const file = store.open;
  const key = draftKey();
  const draft = pref.get(key, null);
  if (!draft) return;
  if (draft.text === file.text) return pref.drop(key);
  const restore = () => {
    editor.insert(draft.text, 0, editor.text().length);
    if (draft.base !== file.version) press('The file on the disk is newer than what this text began from.', ['Look at both', () => conflict(file, { ...file })]);
    else clearPressing();
    tell('file');
  };
  if (draft.page === page) { editor.show(draft.text); return tell('file'); }
  press(`Unsaved text of ${when(draft.at)} was kept${draft.base === file.version ? '' : '; the disk has a newer version'}.`,
    ['Bring it back', restore],
    ['Look at both', async () => {
      const choice = await open('conflict', { path: file.path, mine: draft.text, disk: file.text, isDraft: true });
      if (choice?.take === 'mine') restore();
      if (choice?.take === 'merge') { editor.insert(choice.text, 0, editor.text().length); clearPressing(); }
      if (choice?.take === 'theirs') { pref.drop(key); clearPressing(); }
    }],
    ['Throw it away', () => { pref.drop(key); clearPressing(); }]);
}

// ── The text as it stands ───────────────────────────────────────────────────────────────────────────────────────────────

let checks = 0;
/** Asks the host what a save would find. The answer counts only for the text that it was asked about. */
export async function check() {
  const file = store.open;
  const text = editor.text();
  if (!file || !store.online) return;
  if (!isDirty()) return showProblems();
  if (!/\.(rhai|json)$/.test(file.path)) return;
  checks += 1;
  const mine = checks;
  try {
    const { diagnostics } = await post(at('plugins', file.plugin, 'check'), { path: file.path, text });
    if (mine === checks && store.open === file && editor.text() === text) showProblems(diagnostics);
  } catch { /* a check that cannot be made now is made with the next key */ }
}

