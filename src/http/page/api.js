// Everything that goes over the wire: requests, streamed answers, the events of the host with resume; and the one store of
// plain objects that they keep true. It draws nothing.

/** What the page knows of the host. Plain values; `tell` says which of them changed. */
export const store = {
  session: null,
  host: null,
  plugins: [],
  tools: [],
  /** What lies in the folders of plugins and is none: `{subject, message}`. */
  notices: [],
  /** Whether the host answers. */
  online: true,
  /** The plugin and the tool that are looked at. */
  plugin: null,
  tool: null,
  /** The open file: `{plugin, path, version, text, editable}`; `text` is what the disk holds. */
  open: null,
};

const listeners = new Map();

/** Calls `hear` whenever `what` is told. */
export function on(what, hear) {
  if (!listeners.has(what)) listeners.set(what, new Set());
  listeners.get(what).add(hear);
  return () => listeners.get(what).delete(hear);
}

export function tell(what, detail) {
  for (const hear of [...(listeners.get(what) ?? [])]) {
    // One region that fails must not leave the others untold.
    try { hear(detail); } catch (error) { console.error(error); }
  }
}

/** A refused or failed request: `code`, `message` and `hint` as the host gives them, `body` the whole answer. */
export class Failure extends Error {
  constructor(status, body, fallback) {
    const error = body?.error ?? {};
    super(error.message ?? fallback);
    this.status = status;
    this.code = error.code ?? 'internal';
    this.hint = error.hint ?? '';
    this.body = body;
  }
}

const away = () => new Failure(0, { error: { code: 'offline', message: 'the host does not answer', hint: 'nothing is lost: start it again (lapidary serve), and the page goes on by itself' } });

async function send(method, path, { body, raw, accept, signal, headers, again } = {}) {
  const sent = { ...headers };
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  if (accept) sent.Accept = accept;
  if (method !== 'GET' && store.session?.csrf) sent['X-CSRF-Token'] = store.session.csrf;
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body: raw ?? (body === undefined ? undefined : JSON.stringify(body)), signal, credentials: 'same-origin', cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    setOnline(false);
    throw away();
  }
  if (response.ok) return response;
  const failure = new Failure(response.status, await response.json().catch(() => null), `the host answered ${response.status}`);
  // Another tab signed in anew: the session is theirs together, and its token is to be had.
  if (failure.body?.needs === 'csrf' && !again) {
    store.session = await get('/api/session');
    return send(method, path, { body, raw, accept, signal, headers, again: true });
  }
  if (response.status === 401 && path !== '/api/session' && store.session) {
    store.session = null;
    tell('signed-out', failure);
  }
  throw failure;
}

async function value(response) {
  if (response.status === 204) return null;
  const etag = response.headers.get('ETag');
  const data = await response.json();
  if (etag && data && typeof data === 'object') Object.defineProperty(data, 'etagHeader', { value: etag });
  return data;
}

export const get = async (path, options) => value(await send('GET', path, options));
export const post = async (path, body, options) => value(await send('POST', path, { body, ...options }));
export const put = async (path, body, options) => value(await send('PUT', path, { body, ...options }));
export const del = async (path, options) => value(await send('DELETE', path, options));

/** A path under `/api` with every piece escaped. */
export const at = (...pieces) => `/api/${pieces.map(encodeURIComponent).join('/')}`;
/** A query; what is empty is left out. */
export function query(values) {
  const pairs = Object.entries(values).filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

/** Posts and reads a streamed answer: `hear(name, data)` for each event. Gives the data of `result`. */
export async function stream(path, body, hear, signal) {
  const response = await send('POST', path, { body, accept: 'text/event-stream', signal });
  // A host that answers at once, without a stream, is as good.
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return response.json();
  let result;
  await read(response, (event) => {
    const data = JSON.parse(event.data || 'null');
    if (event.name === 'result') result = data;
    else if (event.name === 'error') throw new Failure(500, data, 'the call failed');
    else hear(event.name, data);
  });
  if (result === undefined) throw away();
  return result;
}

/** Reads server-sent events until the connection ends. */
async function read(response, hear) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = { name: 'message', data: '', id: null };
  for (;;) {
    const { done, value: chunk } = await reader.read();
    if (done) return;
    const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data !== '' || event.name !== 'message') hear({ ...event, data: event.data.replace(/\n$/, '') });
        event = { name: 'message', data: '', id: null };
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === '') hear({ name: 'alive', data: '' });
      else if (field === 'event') event.name = text;
      else if (field === 'data') event.data += `${text}\n`;
      else if (field === 'id') event.id = text;
    }
  }
}

// ── What happens in the host ────────────────────────────────────────────────────────────────────────────────────────────

/** Longer than this without a sign of life (one comes every 15 s), and the connection is taken for dead. */
const SILENCE = 40_000;
/** A hidden page lets its connection go after this: browsers keep only six to one host, and tabs are many. */
const HIDDEN = 30_000;

const feed = { last: null, boot: null, wait: 0, abort: null, wake: null, running: false, parked: false, work: Promise.resolve() };

function setOnline(online, seconds = 0) {
  const changed = store.online !== online;
  store.online = online;
  if (changed || !online) tell('online', { online, seconds });
}

/** Follows the events for as long as the page lives. */
export async function follow() {
  if (feed.running) return;
  feed.running = true;
  while (store.session) {
    if (feed.parked) await new Promise((wake) => { feed.wake = wake; });
    try { await listen(); } catch (error) { if (error instanceof Failure && error.status === 401) break; }
    if (feed.parked || !store.session) continue;
    feed.wait = Math.min(15, feed.wait ? feed.wait * 2 : 0.5);
    setOnline(false, feed.wait);
    await new Promise((wake) => { feed.wake = wake; setTimeout(wake, feed.wait * 1000); });
  }
  feed.running = false;
}

/** Tries again at once, for a person who does not want to wait. */
export function tryNow() {
  feed.wait = 0;
  feed.wake?.();
}

async function listen() {
  feed.abort = new AbortController();
  const response = await send('GET', '/api/events', {
    accept: 'text/event-stream', signal: feed.abort.signal, headers: feed.last ? { 'Last-Event-ID': feed.last } : {},
  });
  feed.wait = 0;
  setOnline(true);
  let timer;
  const alive = () => { clearTimeout(timer); timer = setTimeout(() => feed.abort.abort(), SILENCE); };
  alive();
  try {
    await read(response, (event) => {
      alive();
      if (event.id) feed.last = event.id;
      // One after the other: of two answers about one plugin the later must count. A failed fetch is told by the next.
      if (event.name !== 'alive') feed.work = feed.work.then(() => happened(event.name, event.data ? JSON.parse(event.data) : {})).catch(() => {});
    });
  } finally { clearTimeout(timer); }
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(feed.hide);
  if (document.hidden) {
    feed.hide = setTimeout(() => { feed.parked = true; feed.abort?.abort(); }, HIDDEN);
  } else if (feed.parked) {
    feed.parked = false;
    feed.wake?.();
  }
});

/** One event of the host: the store is brought up to date first, then the regions are told. */
async function happened(name, data) {
  switch (name) {
    case 'hello':
      // Another boot numbers its events anew, and may have loaded anything.
      if (feed.boot && feed.boot !== data.boot) { feed.last = null; await refresh(); tell('anew'); }
      feed.boot = data.boot;
      store.version = data.version;
      break;
    case 'resync': await refresh(); tell('anew'); break;
    case 'plugin_live': case 'plugin_failed': case 'plugin_waits':
      await refreshPlugin(data.plugin);
      break;
    // Its place may be another's now.
    case 'plugin_gone': await refresh(); break;
    case 'tools_changed': refreshTools(); break;
    default: break;
  }
  tell(`host:${name}`, data);
}

/** Fetches everything anew. */
export async function refresh() {
  const [plugins, tools] = await Promise.all([get('/api/plugins'), get('/api/tools?all=true')]);
  store.plugins = plugins.plugins;
  store.notices = plugins.notices ?? [];
  store.tools = tools.tools;
  tell('tools');
  tell('plugins');
}

async function refreshPlugin(name) {
  try {
    keep(await get(at('plugins', name)));
  } catch (error) {
    if (error.status !== 404) return;
    store.plugins = store.plugins.filter((plugin) => plugin.name !== name);
    tell('plugins', name);
  }
}

/** A fresh status takes the place of what was known of that plugin. */
export function keep(status) {
  const index = store.plugins.findIndex((plugin) => plugin.name === status.name);
  if (index < 0) store.plugins = [...store.plugins, status].sort((a, b) => (a.name < b.name ? -1 : 1));
  else store.plugins[index] = status;
  tell('plugins', status.name);
}

let asking = null;
/** One fetch at a time: events come in bursts, and the last state is what counts. */
export function refreshTools() {
  asking ??= (async () => {
    try {
      await new Promise((soon) => setTimeout(soon, 20));
      const { tools } = await get('/api/tools?all=true');
      store.tools = tools;
    } catch { return; } finally { asking = null; }
    tell('tools');
  })();
  return asking;
}

export const pluginOf = (name) => store.plugins.find((plugin) => plugin.name === name);
export const toolsOf = (plugin) => store.tools.filter((tool) => tool.plugin === plugin);
/** Letters for a name of our own: also where a page is not secure enough for randomUUID. */
export const randomId = () => [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** The state of a plugin in one word and in the words of every other door. */
export function chipOf(status) {
  const live = status.live;
  const left = status.quarantined?.length ? `quarantined: tool ${status.quarantined.map((one) => one.tool).join(', ')}` : '';
  if (!status.enabled) return { state: 'off', short: 'off', long: 'off' };
  if (status.waiting) return { state: 'held', short: live ? `${live}/${status.disk} held` : 'held', long: live ? `live ${live}, held: wants more` : 'held: wants more' };
  if (live && status.disk) return { state: 'look', short: `${live}/${status.disk} !`, long: `live ${live}, disk ${status.disk} failed` };
  if (!live) return { state: 'bad', short: 'failed', long: 'failed' };
  const partly = status.diagnostics?.length ? ', some files failed' : '';
  if (left || partly) return { state: 'look', short: `${live} !`, long: [`live ${live}${partly}`, left].filter(Boolean).join(', ') };
  return { state: 'live', short: `${live} ✓`, long: `live ${live} ✓` };
}
