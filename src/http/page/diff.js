// What differs between two texts, line by line: the shortest way from one to the other, and both in one text with markers.

/** The pieces `{kind: 'same' | 'mine' | 'theirs', lines}` in order. Myers' way, after the ends that agree are set aside. */
export function pieces(mine, theirs) {
  const a = mine.split('\n');
  const b = theirs.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const out = [];
  const put = (kind, line) => {
    if (out.at(-1)?.kind === kind) out.at(-1).lines.push(line);
    else out.push({ kind, lines: [line] });
  };
  for (const line of a.slice(0, head)) put('same', line);
  for (const [kind, line] of walk(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) put(kind, line);
  for (const line of a.slice(a.length - tail)) put('same', line);
  return out;
}

function walk(a, b) {
  const most = a.length + b.length;
  // Two texts that have little in common are shown as one whole change: nobody reads more, and the way there is long.
  if (most > 6000) return [...a.map((line) => ['mine', line]), ...b.map((line) => ['theirs', line])];
  const reach = new Map([[1, 0]]);
  const trail = [];
  for (let depth = 0; depth <= most; depth += 1) {
    trail.push(new Map(reach));
    for (let k = -depth; k <= depth; k += 2) {
      const down = k === -depth || (k !== depth && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? reach.get(k + 1) ?? 0 : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return back(a, b, trail);
    }
  }
  return [];
}

function back(a, b, trail) {
  const out = [];
  let x = a.length;
  let y = b.length;
  for (let depth = trail.length - 1; depth >= 0; depth -= 1) {
    const reach = trail[depth];
    const k = x - y;
    const down = k === -depth || (k !== depth && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const fromX = depth === 0 ? 0 : reach.get(from) ?? 0;
    const fromY = depth === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) { x -= 1; y -= 1; out.push(['same', a[x]]); }
    if (depth === 0) break;
    if (down) { y -= 1; out.push(['theirs', b[y]]); } else { x -= 1; out.push(['mine', a[x]]); }
  }
  return out.reverse();
}

/** A unified diff, `-` for `old` and `+` for `fresh`, with three lines around each change. */
export function unified(old, fresh, around = 3) {
  const rows = pieces(old, fresh).flatMap(({ kind, lines }) => lines.map((line) => ({ sign: kind === 'same' ? ' ' : kind === 'mine' ? '-' : '+', line })));
  const near = rows.map((_, index) => rows.slice(Math.max(0, index - around), index + around + 1).some((row) => row.sign !== ' '));
  const out = [];
  let oldLine = 1;
  let newLine = 1;
  rows.forEach((row, index) => {
    if (near[index]) {
      if (!near[index - 1]) out.push(`@@ -${oldLine} +${newLine} @@`);
      out.push(row.sign + row.line);
    }
    if (row.sign !== '+') oldLine += 1;
    if (row.sign !== '-') newLine += 1;
  });
  return out.join('\n');
}

/** Both in one text: where they differ, mine and theirs stand between markers. */
export function merged(mine, theirs) {
  const out = [];
  const list = pieces(mine, theirs);
  for (let index = 0; index < list.length; index += 1) {
    const { kind, lines } = list[index];
    if (kind === 'same') { out.push(...lines); continue; }
    const other = list[index + 1] && list[index + 1].kind !== 'same' ? list[index += 1] : null;
    const own = kind === 'mine' ? lines : other?.lines ?? [];
    const disk = kind === 'theirs' ? lines : other?.lines ?? [];
    out.push('<<<<<<< mine', ...own, '=======', ...disk, '>>>>>>> disk');
  }
  return out.join('\n');
}
