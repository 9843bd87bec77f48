// A call of before against the version of now: both results side by side, and how they differ. Closing it stops the call.

import { stream, at } from './api.js';
import { h, diffView, fill, took, trouble, when } from './dom.js';
import { sheet } from './sheet.js';
import { unified } from './diff.js';
import { show as showResult } from './result.js';

export async function open(id) {
  const words = h('span', { class: 'words' }, 'Running it again…');
  const place = h('div', { class: 'replay', 'aria-live': 'polite' });
  let running;
  const again = async () => {
    running = new AbortController();
    fill(place, h('p', { class: 'row-head' }, h('progress', { 'aria-label': 'It runs' }), words));
    try {
      const answer = await stream(at('journal', id, 'replay'), {}, (name, data) => {
        if (name === 'progress') words.textContent = data.text ?? (data.total > 0 ? `${data.done} of ${data.total}` : String(data.done ?? ''));
      }, running.signal);
      await draw(place, answer);
    } catch (error) {
      if (error.name !== 'AbortError') fill(place, trouble(error, again));
    }
  };
  again();
  const what = await sheet({ title: 'Replay', id: 'replay', wide: true, body: place, actions: [['Close', undefined], ['Once more', 'again', '']] });
  running.abort();
  return what === 'again' ? open(id) : what;
}

async function draw(place, { then, now, diff, changes = [] }) {
  const sides = [['then', then, `${when(then.at)} · version ${then.generation}`], ['now', now, `now · version ${now.generation}`]];
  const halves = sides.map(([name, result, title]) => {
    const body = h('div', { class: 'result' });
    return { result, body, element: h('section', { class: 'side', data: { side: name } }, h('div', { class: 'row-head' }, h('h3', {}, title), h('span', { class: 'grow' }),
      h('span', { class: result.ok ? 'good' : 'bad' }, result.ok ? 'ok' : result.error?.code ?? result.code ?? 'failed'), h('span', { class: 'soft' }, took(result.duration_ms))), body) };
  });
  // That another version ran is what a replay is for, and no difference of its result.
  const beside = changes.filter((change) => change.what !== 'generation');
  const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '');
  fill(place,
    h('p', { class: 'row-head' }, h('strong', {}, then.tool), h('code', { class: 'args' }, JSON.stringify(then.arguments))),
    h('p', { class: 'note', data: { kind: diff || beside.length ? 'look' : 'good' } }, diff ? 'The results differ.' : beside.length ? 'The same text; beside it something differs.' : 'The same, then and now.'),
    diff && diffView(diff, 'difference of the two texts'),
    beside.map((change) => h('details', {}, h('summary', {}, `${change.what} differs`), diffView(unified(pretty(change.then), pretty(change.now)), `difference of ${change.what}`))),
    h('div', { class: 'sides' }, halves.map((half) => half.element)));
  for (const half of halves) await showResult(half.body, { result: half.result });
}
