// A call of before against the version of now: both results side by side, and how their texts differ.

import { post, at } from './api.js';
import { h, diffView, fill, took, trouble, when } from './dom.js';
import { sheet } from './sheet.js';
import { show as showResult } from './result.js';

export async function open(id) {
  const place = h('div', { class: 'replay', 'aria-live': 'polite' }, h('p', { class: 'soft' }, 'Running it again…'));
  const again = async () => {
    try {
      await draw(place, await post(at('journal', id, 'replay'), {}));
    } catch (error) { fill(place, trouble(error, again)); }
  };
  again();
  return sheet({ title: 'Replay', id: 'replay', wide: true, body: place, actions: [['Close', undefined], ['Once more', 'again', '']] }).then((what) => (what === 'again' ? open(id) : what));
}

async function draw(place, { then, now, diff }) {
  const sides = [['then', then, `${when(then.at)} · version ${then.generation}`], ['now', now, `now · version ${now.generation}`]];
  const halves = sides.map(([name, result, title]) => {
    const body = h('div', { class: 'result' });
    return { result, body, element: h('section', { class: 'side', data: { side: name } }, h('div', { class: 'row-head' }, h('h3', {}, title), h('span', { class: 'grow' }),
      h('span', { class: result.ok ? 'good' : 'bad' }, result.ok ? 'ok' : result.error?.code ?? result.code ?? 'failed'), h('span', { class: 'soft' }, took(result.duration_ms))), body) };
  });
  fill(place,
    h('p', { class: 'row-head' }, h('strong', {}, then.tool), h('code', { class: 'args' }, JSON.stringify(then.arguments))),
    h('p', { class: 'note', data: { kind: diff ? 'look' : 'good' } }, diff ? 'The results differ.' : 'The same text, then and now.'),
    diff && diffView(diff, 'difference of the two results'),
    h('div', { class: 'sides' }, halves.map((half) => half.element)));
  for (const half of halves) await showResult(half.body, { result: half.result });
}

