// The lightbox: one picture large, arrow keys for its neighbours. A native dialog keeps the focus and closes with Escape.

import { h, button, fill } from './dom.js';

/** Opens the pictures `[{src, title, note?, page?}]` at one of them. */
export function open(items, index = 0) {
  let now = index;
  const img = h('img', { alt: '' });
  const words = h('p', { class: 'words', 'aria-live': 'polite' });
  const close = () => dialog.close();
  const walk = (step) => { now = (now + step + items.length) % items.length; draw(); };
  const dialog = h('dialog', { class: 'lightbox', 'aria-label': 'Picture', id: 'lightbox',
    onkeydown: (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (event.key === 'Home') { event.preventDefault(); walk(-now); } else if (event.key === 'End') { event.preventDefault(); walk(items.length - 1 - now); } else if (step) { event.preventDefault(); walk(step); }
    },
    onclick: (event) => { if (event.target === dialog) close(); },
    onclose: () => dialog.remove(),
  },
  h('div', { class: 'frame' }, items.length > 1 && button('‹', () => walk(-1), 'icon', { 'aria-label': 'Previous' }), img, items.length > 1 && button('›', () => walk(1), 'icon', { 'aria-label': 'Next' })),
  h('div', { class: 'row-head' }, words, h('span', { class: 'grow' }), button('Close', close, 'small', { autofocus: true })));
  function draw() {
    const item = items[now];
    img.src = item.src ?? '';
    img.alt = item.title;
    fill(words, items.length > 1 && h('strong', {}, `${now + 1} of ${items.length} `), item.title, item.note && h('span', { class: 'soft' }, ` ${item.note}`),
      item.page && [' ', h('a', { href: item.page, target: '_blank', rel: 'noreferrer noopener' }, 'its page')],
      ' ', item.src && h('a', { href: item.src, download: '' }, 'save'));
  }
  draw();
  document.body.append(dialog);
  dialog.showModal();
}
