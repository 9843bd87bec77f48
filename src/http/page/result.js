// A result in its two halves: what the person sees and what the model sees, with its tokens. Texts stay texts; pictures come
// from this host; an audio file is fetched when it is played, not before.

import { h, $, button, fill, many, size, took, diffView, styles } from './dom.js';
import { open } from './main.js';
import { drawer, goToFinding, visit } from './workshop.js';

const imageOf = (id, view = '') => `/api/tool-image/${encodeURIComponent(id.replace(/^img:/, ''))}${view}`;
/** Only a path on this host, or a picture's handle: a result cannot make the page ask anybody else. */
const local = (path) => (typeof path === 'string' && /^\/(?!\/)/.test(path) ? path : null);
const web = (url) => (typeof url === 'string' && /^https?:\/\//.test(url) ? url : null);

/** Puts a result into `place`. With `then` and `diff` it says what differs from an earlier one. */
export async function show(place, { result, then, diff, logs, said }) {
  await styles('more.css');
  const name = `r${++count}`;
  const model = modelHalf(result);
  const person = personHalf(result);
  const tabs = [['you', 'you see', person], ['model', result.tokens === undefined ? 'the model sees' : `the model sees · ${many(result.tokens, 'token')}`, model]];
  const panels = tabs.map(([key, words, content]) => h('div', { class: 'half', role: 'tabpanel', id: `${name}-${key}`, 'aria-labelledby': `${name}-tab-${key}`, data: { half: key } }, h('h4', { 'aria-hidden': 'true' }, words), content));
  const heads = tabs.map(([key, words]) => button(words, () => choose(key), null, { role: 'tab', id: `${name}-tab-${key}`, 'aria-controls': `${name}-${key}`, data: { half: key } }));
  const choose = (key, focus) => {
    half = key;
    panels.forEach((panel) => panel.classList.toggle('other', panel.dataset.half !== key));
    heads.forEach((head) => {
      head.setAttribute('aria-selected', head.dataset.half === key);
      head.tabIndex = head.dataset.half === key ? 0 : -1;
      if (focus && head.dataset.half === key) head.focus();
    });
  };
  const list = h('div', { class: 'tabs halves', role: 'tablist', 'aria-label': 'Two views of the result', onkeydown: (event) => {
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') { event.preventDefault(); choose(half === 'you' ? 'model' : 'you', true); }
  } }, heads);
  choose(half);
  fill(place,
    then && h('p', { class: 'note', data: { kind: diff ? 'look' : 'good' } }, diff ? `Replayed: it differs from the call of version ${then.generation}.` : `Replayed: the same as version ${then.generation} gave.`),
    list, h('div', { class: 'both' }, panels),
    said && h('p', { class: 'soft' }, `The last it said: ${said}.`),
    then && diff && h('details', { open: true }, h('summary', {}, 'What differs'), diffView(diff)),
    logs?.length > 0 && h('details', {}, h('summary', {}, many(logs.length, 'log line')), logLines(logs)),
    result.warnings?.length > 0 && h('details', {}, h('summary', {}, many(result.warnings.length, 'note for the author', 'notes for the author')), h('ul', {}, result.warnings.map((text) => h('li', {}, typeof text === 'string' ? text : text.message)))));
}
let count = 0;
let half = 'you';

export const logLines = (logs) => h('ol', { class: 'log plain' }, logs.map((line) => h('li', { data: { level: line.level } },
  line.at_ms !== undefined && h('span', { class: 'soft' }, `${took(line.at_ms)} `), h('span', { class: 'level' }, line.level), ' ', line.text)));

// ── What the person sees ────────────────────────────────────────────────────────────────────────────────────────────────

function personHalf(result) {
  const text = result.shown ?? result.text;
  const parts = result.parts ?? [];
  return [
    result.error ? problem(result) : text !== '(no output)' || !parts.length ? h('pre', { class: 'said', tabindex: '0' }, text) : null,
    pictures(parts.filter((part) => part.type === 'image')),
    parts.filter((part) => part.type === 'gallery').map(gallery),
    parts.filter((part) => part.type === 'files').map(files),
  ];
}

/** A failure: what happened, where, and what to do. */
function problem(result) {
  const { error, diagnostic } = result;
  const lead = /^\s*/.exec(diagnostic?.snippet ?? '')[0].length;
  return h('div', { class: 'trouble' }, h('p', {}, h('strong', {}, error.code), ` ${error.message}`),
    error.hint && h('p', { class: 'soft' }, error.hint),
    error.code === 'permission_denied' && result.plugin && button('See what it may do', async () => { await visit(result.plugin, result.tool); if ($('tab-permissions').ariaSelected !== 'true') drawer('permissions'); }, 'small'),
    diagnostic?.line > 0 && error.code !== 'cancelled' && [
      diagnostic.snippet !== undefined && h('pre', { class: 'snippet', tabindex: '0' }, `${diagnostic.snippet.slice(lead)}\n`,
        diagnostic.column > 0 && h('span', { class: 'caret' }, `${' '.repeat(Math.max(0, diagnostic.column - (diagnostic.snippet_column ?? 1) - lead))}^`)),
      button(`Go to ${diagnostic.file.split('/').pop()}:${diagnostic.line}`, () => goToFinding(diagnostic, result.plugin), 'small'),
    ],
    error.fallbacks?.length > 0 && h('p', { class: 'soft' }, `Others that may serve: ${error.fallbacks.map((one) => one.tool).join(', ')}`));
}

/** Pictures in a numbered row; a click, or Enter, opens the lightbox, where arrow keys walk. */
function pictures(images) {
  if (!images.length) return null;
  const shown = images.map((image, index) => ({ src: image.id ? imageOf(image.id) : null, title: image.caption || `Picture ${index + 1}`, note: [image.width ? `${image.width} × ${image.height}` : '', image.media_type].filter(Boolean).join(', ') }));
  return h('ol', { class: 'pictures', 'aria-label': 'Pictures' }, images.map((image, index) => h('li', {},
    h('button', { type: 'button', class: 'tile', onclick: () => open('lightbox', shown, index) },
      shown[index].src ? h('img', { src: shown[index].src, alt: shown[index].title, loading: 'lazy', decoding: 'async', width: image.width || null, height: image.height || null }) : h('span', { class: 'soft' }, 'not kept'),
      images.length > 1 && h('span', { class: 'index', 'aria-hidden': 'true' }, String(index + 1))),
    image.unseen ? h('p', { class: 'soft' }, `not shown to the model: ${image.unseen}`) : image.display_only && h('p', { class: 'soft' }, 'for you alone'))));
}

function gallery(part) {
  const items = part.items.map((item, index) => {
    const small = item.handle ? imageOf(item.handle) : local(item.thumb) ?? local(item.full);
    return { src: local(item.full) ?? small, small, title: item.title || `Picture ${index + 1}`, page: web(item.page) };
  });
  return h('section', { class: 'gallery' }, part.title && h('h3', {}, part.title),
    h('ol', { class: 'pictures', 'aria-label': part.title || 'Gallery' }, items.map((item, index) => h('li', {},
      h('button', { type: 'button', class: 'tile', onclick: () => open('lightbox', items, index) },
        item.small ? h('img', { src: item.small, alt: item.title, loading: 'lazy', decoding: 'async' }) : h('span', { class: 'soft' }, 'no picture'),
        h('span', { class: 'index', 'aria-hidden': 'true' }, String(index + 1))),
      h('p', { class: 'title', title: item.title }, item.title)))));
}

const AUDIO = /\.(mp3|wav|ogg|oga|m4a|flac)$/i;

function files(part) {
  return h('section', { class: 'files' }, part.title && h('h3', {}, part.title), h('ul', { class: 'plain' }, part.items.map((item) => {
    const url = local(item.url);
    return h('li', { class: 'row-head' }, url && (AUDIO.test(item.name) || AUDIO.test(url.split('?')[0])) ? player(url, item.name) : h('span', { class: 'name' }, item.name),
      h('span', { class: 'grow' }),
      url && h('a', { href: url, download: item.name, class: 'button small', 'aria-label': `Download ${item.name}` }, 'Download'));
  })));
}

/** A player that has no address until play is pressed, so that nothing is fetched before. */
function player(url, name) {
  const audio = h('audio', { preload: 'none', data: { audio: name } });
  const clock = h('span', { class: 'clock' });
  const seek = h('input', { type: 'range', min: '0', max: '1000', value: '0', 'aria-label': `Place in ${name}`, disabled: true });
  const play = button('▶', async () => {
    if (!audio.src) audio.src = url;
    if (!audio.paused) return audio.pause();
    try { await audio.play(); } catch { clock.textContent = 'cannot be played; download it instead'; }
  }, 'icon', { 'aria-label': `Play ${name}` });
  const time = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, '0')}`;
  for (const event of ['play', 'pause', 'ended']) audio.addEventListener(event, () => {
    play.textContent = audio.paused ? '▶' : '❙❙';
    play.setAttribute('aria-label', `${audio.paused ? 'Play' : 'Pause'} ${name}`);
  });
  audio.addEventListener('timeupdate', () => {
    if (!Number.isFinite(audio.duration)) { clock.textContent = time(audio.currentTime); return; }
    seek.disabled = false;
    if (document.activeElement !== seek || !seek.matches(':active')) seek.value = String((audio.currentTime / audio.duration) * 1000);
    clock.textContent = `${time(audio.currentTime)} / ${time(audio.duration)}`;
  });
  seek.addEventListener('input', () => { if (Number.isFinite(audio.duration)) audio.currentTime = (Number(seek.value) / 1000) * audio.duration; });
  return h('span', { class: 'player' }, play, h('span', { class: 'name', title: name }, name), seek, clock, audio);
}

// ── What the model sees ─────────────────────────────────────────────────────────────────────────────────────────────────

function modelHalf(result) {
  const seen = (result.parts ?? []).filter((part) => part.type === 'image' && part.id && !part.display_only && !part.unseen);
  return [
    h('pre', { class: 'said', tabindex: '0' }, result.text),
    seen.length > 0 && h('ol', { class: 'pictures', 'aria-label': 'Pictures the model sees' }, seen.map((image, index) => h('li', {},
      h('button', { type: 'button', class: 'tile', onclick: () => open('lightbox', seen.map((one, at) => ({ src: imageOf(one.id, '?view=model'), title: `Picture ${at + 1}, as the model sees it` })), index) },
        h('img', { src: imageOf(image.id, '?view=model'), alt: `Picture ${index + 1}, as the model sees it`, loading: 'lazy', width: image.width || null, height: image.height || null }))))),
    result.structured !== undefined && result.structured !== null && [h('h3', {}, 'structured'), h('pre', { class: 'said json', tabindex: '0' }, JSON.stringify(result.structured, null, 2))],
    h('p', { class: 'soft' }, [result.tokens === undefined ? null : many(result.tokens, 'token'), size(new TextEncoder().encode(result.text).length), result.memory ? `${size(result.memory)} of memory` : null].filter(Boolean).join(' · ')),
  ];
}
