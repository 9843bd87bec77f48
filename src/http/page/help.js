// The list of keys.

import { h, onMac } from './dom.js';
import { sheet } from './sheet.js';

const C = onMac ? '⌘' : 'Ctrl+';
const KEYS = [
  ['Everywhere', [
    [`${C}K`, 'commands, tools, plugins'], [`${C}Enter`, 'run the tool'], [`${C}S`, 'save'], ['F8', 'next problem (Shift: the one before)'], [`${C}J`, 'drawer'],
    ['Alt+↑ / Alt+↓', 'previous, next tool'], ['Esc', 'close the topmost thing'], ['?', 'this list'],
  ]],
  ['In the script', [
    ['Tab / Shift+Tab', 'indent, outdent (Esc, then Tab leaves the script)'], [`${C}/`, 'comment lines, and back'], ['Ctrl+Space', 'complete'], ['Enter or Tab', 'take the completion'],
    [`${C}K ${C}I`, 'what the name at the caret means'], [`${C}F`, 'find'], [`${C}H`, 'replace'], [`${C}G`, 'go to a line'], [`${C}Shift+K`, 'delete lines'], [`${C}Z`, 'undo'],
  ]],
  ['In the form and the lightbox', [['Enter', 'run'], ['Shift+Enter', 'a new line in a text'], ['← / →', 'the picture before, the next'], ['Home / End', 'the first, the last picture']]],
];

export const open = () => sheet({
  title: 'Keys', id: 'help', actions: [],
  body: h('div', { class: 'keys' }, KEYS.map(([title, keys]) => h('section', {}, h('h3', {}, title), h('dl', {}, keys.map(([key, words]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, words))))))),
});
