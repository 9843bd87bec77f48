// Two versions of one file: shows how they differ and asks which goes on. It writes nothing itself.

import { h, diffView } from './dom.js';
import { sheet } from './sheet.js';
import { merged, unified } from './diff.js';

/** Resolves with `{take: 'mine' | 'theirs' | 'merge', text}`, or nothing where the person looks away. */
export async function open({ path, mine, disk, isDraft = false }) {
  const take = await sheet({
    title: isDraft ? `Kept text of ${path}` : `${path}: yours and the disk's`, wide: true, id: 'conflict',
    body: [
      h('p', {}, isDraft ? 'Lines with − are on the disk, lines with + are in the text that was kept.' : 'Somebody else saved this file meanwhile. Lines with − are on the disk, lines with + are yours. Nothing is lost until you choose.'),
      diffView(unified(disk, mine) || ' they are the same', 'difference of the disk and yours'),
    ],
    actions: [['Decide later', undefined], ['Take theirs', 'theirs', ''], ['Merge by hand', 'merge', ''], [isDraft ? 'Bring mine back' : 'Keep mine', 'mine', 'primary']],
  });
  return take && { take, text: take === 'merge' ? merged(mine, disk) : mine };
}
