// Rhai as an editor sees it: one line at a time, with what the lines before left open. A state is a text of one letter for each
// thing that is open, so two states are the same when the texts are:
//   c d  a block comment, plain or of documentation (they nest: one letter each)
//   s    a "text" whose line ended in a backslash      t  a `text`      i  ${ .. } in it      b  a { } within that
//   r    a raw text, one letter for each # before its quote

const words = (text) => new Set(text.split(' '));
export const KEYWORDS = words('let const fn private if else switch for in while loop do until break continue return throw try catch import export as this global true false');
/** Words that Rhai keeps for itself: no variable, parameter or unquoted key may bear one. */
export const RESERVED = words('async await case curry debug default eval Fn is is_def_fn is_def_var is_shared match module new nil null package print protected public shared spawn static super sync thread type_of use var void with yield go goto call');
const ATOMS = words('true false this global');
const NUMBER = /0x[\da-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const CHAR = /'(?:[^'\\]|\\(?:[tnr\\'"`0]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}))'/y;
const RAW = /(#+)"/y;
const TAG = /(?<=^\s*(?:\/\/[/!]|\*)?\s*)@\w+|\{[^}]*\}/g;

/**
 * One line's pieces and the state after it. Pieces are pairs, end and kind, one after the other in one array; what lies between
 * two kinds is plain. Kinds: keyword atom string number comment doc tag call module property constant escape hole
 */
export function tokenize(line, state) {
  const pieces = [];
  let open = state;
  let at = 0;
  let last = 0;
  const put = (end, kind) => {
    if (end > last) { pieces.push(end, kind); last = end; }
    at = end;
  };
  const plain = () => { if (at > last) { pieces.push(at, ''); last = at; } };
  while (at < line.length || (at === 0 && line === '')) {
    const top = open.at(-1);
    if (top === 'c' || top === 'd') {
      const next = /\/\*|\*\//g;
      next.lastIndex = at;
      const found = next.exec(line);
      if (!found) { documented(line, at, line.length, top, put); break; }
      const end = next.lastIndex;
      documented(line, at, end, top, put);
      open = found[0] === '/*' ? open + top : open.slice(0, -1);
      continue;
    }
    if (top === 's') { open = text(line, open, put, at, '"'); if (line === '') break; continue; }
    if (top === 't') { open = text(line, open, put, at, '`'); if (line === '') break; continue; }
    if (top === 'r') {
      const hashes = /r+$/.exec(open)[0].length;
      const end = line.indexOf(`"${'#'.repeat(hashes)}`, at);
      put(end < 0 ? line.length : end + 1 + hashes, 'string');
      if (end >= 0) open = open.slice(0, -hashes);
      if (line === '') break;
      continue;
    }
    if (line === '') break;
    const char = line[at];
    const two = line.slice(at, at + 2);
    if (two === '//') {
      plain();
      const doc = line[at + 2] === '!' || (line[at + 2] === '/' && line[at + 3] !== '/');
      documented(line, at, line.length, doc ? 'd' : 'c', put);
      break;
    }
    if (two === '/*') {
      plain();
      const doc = (line[at + 2] === '*' && line[at + 3] !== '/' && line[at + 3] !== '*') || line[at + 2] === '!';
      open += doc ? 'd' : 'c';
      put(at + 2, doc ? 'doc' : 'comment');
      continue;
    }
    if (char === '"') { plain(); at += 1; open = text(line, `${open}s`, put, at, '"'); continue; }
    if (char === '`') { plain(); put(at + 1, 'string'); open += 't'; continue; }
    if (char === '#') {
      RAW.lastIndex = at;
      const raw = RAW.exec(line);
      if (raw) { plain(); put(RAW.lastIndex, 'string'); open += 'r'.repeat(raw[1].length); continue; }
      at += 1;
      continue;
    }
    if (char === "'") {
      CHAR.lastIndex = at;
      if (CHAR.test(line)) { plain(); put(CHAR.lastIndex, 'string'); continue; }
      at += 1;
      continue;
    }
    if (char === '{' && open) { open += 'b'; at += 1; continue; }
    if (char === '}' && open) {
      const closes = open.at(-1);
      open = open.slice(0, -1);
      if (closes === 'i') { plain(); put(at + 1, 'hole'); } else at += 1;
      continue;
    }
    if (char >= '0' && char <= '9') {
      plain();
      NUMBER.lastIndex = at;
      NUMBER.test(line);
      // `1..5` is a range: the dot belongs to the number only before a digit, which the pattern asks for.
      put(NUMBER.lastIndex || at + 1, 'number');
      continue;
    }
    NAME.lastIndex = at;
    if (NAME.test(line)) {
      plain();
      const end = NAME.lastIndex;
      put(end, kindOf(line, at, end));
      continue;
    }
    at += 1;
  }
  at = line.length;
  plain();
  // A text in double quotes ends with its line, unless a backslash carries it on.
  if (open.at(-1) === 's' && !carriesOn(line)) open = open.slice(0, -1);
  return { pieces, state: open };
}

const carriesOn = (line) => /(^|[^\\])(\\\\)*\\$/.test(line);

function kindOf(line, from, end) {
  const word = line.slice(from, end);
  let before = from - 1;
  while (before >= 0 && (line[before] === ' ' || line[before] === '\t')) before -= 1;
  const dotted = line[before] === '.' && line[before - 1] !== '.';
  if (!dotted && KEYWORDS.has(word)) return ATOMS.has(word) ? 'atom' : 'keyword';
  let after = end;
  while (line[after] === ' ') after += 1;
  if (line[after] === ':' && line[after + 1] === ':') return 'module';
  if (line[after] === '(' || (line[after] === '!' && line[after + 1] === '(')) return 'call';
  if (dotted || (line[after] === ':' && line[before] !== '?')) return 'property';
  return /^[A-Z][A-Z0-9_]+$/.test(word) ? 'constant' : '';
}

/** A comment's text, with the tags and types of documentation told apart. */
function documented(line, from, end, kind, put) {
  if (kind === 'd') {
    TAG.lastIndex = 0;
    const part = line.slice(0, end);
    for (const found of part.matchAll(TAG)) {
      if (found.index < from || (found[0][0] === '{' && !/@(param|returns|example)\b/.test(part.slice(0, found.index)))) continue;
      put(found.index, 'doc');
      put(found.index + found[0].length, found[0][0] === '@' ? 'tag' : 'type');
    }
  }
  put(end, kind === 'd' ? 'doc' : 'comment');
}

/** A text up to its quote, its hole or the end of the line. Gives the state then. */
function text(line, state, put, from, quote) {
  let at = from;
  while (at < line.length) {
    const char = line[at];
    if (char === '\\' && quote === '"') {
      put(at, 'string');
      const long = { x: 4, u: 6, U: 10 }[line[at + 1]] ?? 2;
      at = Math.min(line.length, at + long);
      put(at, 'escape');
    } else if (char === quote) {
      put(at + 1, 'string');
      return state.slice(0, -1);
    } else if (quote === '`' && char === '$' && line[at + 1] === '{') {
      put(at, 'string');
      put(at + 2, 'hole');
      return `${state}i`;
    } else at += 1;
  }
  put(line.length, 'string');
  return state;
}

/** Where the bracket that belongs to the one at `from` stands, within `most` characters; -1 where there is none. */
export function partner(textOf, from, most = 20_000) {
  const pairs = '()[]{}';
  const index = pairs.indexOf(textOf[from]);
  if (index < 0) return -1;
  const step = index % 2 === 0 ? 1 : -1;
  const other = pairs[index + step];
  let depth = 0;
  for (let at = from; at >= 0 && at < textOf.length && Math.abs(at - from) < most; at += step) {
    if (textOf[at] === textOf[from]) depth += 1;
    else if (textOf[at] === other) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}
