// Headwater in a page: rows of a view that keep themselves right, and events that are sent once.
//
//   import { view, send } from "/client/headwater.js";
//   const timeline = view("timelines", "ada");
//   timeline.addEventListener("change", () => draw(timeline.rows));
//   await send("posts", { author: "ada", text: "hello" });
//
// Rows and the id of their last change are kept together in IndexedDB, so a page that is loaded again, or
// was offline, shows what it had and goes on right after it: nothing is missed, nothing comes twice. What is
// sent waits in IndexedDB until the server has it; its key keeps it from being appended twice.

const SHORTEST = 200, LONGEST = 5000, SILENCE = 45000;
// What may be sent again: 401 until a token is set that counts, 409 while another server is at work on it.
const LATER = [401, 408, 409, 429];
const settings = { url: "", token: null };

/** Say where the server is, if it is not this page's own, and with which token it is called. */
export function configure(options) {
  Object.assign(settings, options);
}

/** Return the rows of a view, or of the leading columns of its key, which stay right until closed. */
export function view(name, key = [], options = {}) {
  return new LiveView(name, Array.isArray(key) ? key : [key], options);
}

export class LiveView extends EventTarget {
  /** Emits "change" with `detail` {kind, key, old, new}, "state", and "failed" with what the server says. */
  constructor(name, key, { where = {} } = {}) {
    super();
    const params = new URLSearchParams({ snapshot: "true" });
    for (const value of key) params.append("key", value);
    for (const [column, value] of Object.entries(where)) params.append("where", `${column}:${value}`);
    this.path = `/v1/views/${encodeURIComponent(name)}/changes?${params}`;
    this.ready = false; // whether the rows are whole
    this.live = false; // whether the server is there
    this._rows = new Map();
    this._columns = [];
    this._last = null;
    this._gone = new AbortController();
    this._run();
  }

  /** The rows in the order of their key. */
  get rows() {
    return (this._sorted ??= [...this._rows.entries()]
      .map(([text, row]) => [JSON.parse(text), row])
      .sort(([a], [b]) => compare(a, b))
      .map(([, row]) => row));
  }

  /** Yields the rows, as they are and then after each change. */
  async *[Symbol.asyncIterator]() {
    while (!this._gone.signal.aborted) {
      if (this.ready) yield this.rows;
      await new Promise((resolve) => {
        this.addEventListener("change", resolve, { once: true });
        this._gone.signal.addEventListener("abort", resolve, { once: true });
      });
    }
  }

  close() {
    this._gone.abort();
  }

  async _run() {
    const kept = await store("get", "views", settings.url + this.path);
    if (kept) {
      this._rows = new Map(kept.rows);
      [this._last, this._columns, this.ready] = [kept.last, kept.columns, true];
      this._tell({ kind: "kept" });
    }
    let pause = SHORTEST;
    while (!this._gone.signal.aborted) {
      try {
        await this._follow(() => (pause = SHORTEST));
      } catch (error) {
        if (error instanceof Refused) return this.dispatchEvent(new CustomEvent("failed", { detail: error }));
      }
      this._alive(false);
      await rest(pause, this._gone.signal);
      pause = Math.min(pause * 2, LONGEST);
    }
  }

  async _follow(answered) {
    this._incoming = null;
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE);
    const signal = AbortSignal.any([this._gone.signal, silence.signal]);
    globalThis.addEventListener?.("offline", () => silence.abort(), { signal });
    const headers = { ...authorization(), Accept: "text/event-stream" };
    if (this._last !== null) headers["Last-Event-ID"] = this._last;
    try {
      const response = await fetch(settings.url + this.path, { headers, signal, cache: "no-store" });
      if (!response.ok) throw await refusal(response);
      answered();
      this._alive(true);
      for await (const events of eventsOf(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE);
        for (const event of events) this._take(event);
        if (this.ready) await this._keep();
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  _take({ name, data, id }) {
    if (name === "snapshot") {
      [this._incoming, this._columns] = [new Map(), data.key];
    } else if (name === "row") {
      this._incoming.set(JSON.stringify(this._columns.map((column) => data[column])), data);
    } else if (name === "ready") {
      // The old rows are shown until the new ones are whole.
      if (this._incoming) [this._rows, this._incoming] = [this._incoming, null];
      [this.ready, this._last] = [true, id];
      this._tell({ kind: "ready" });
    } else if (name === "change") {
      const key = JSON.stringify(data.key);
      if (data.new === null) this._rows.delete(key);
      else this._rows.set(key, data.new);
      this._last = id;
      this._tell(data);
    } else if (name === "failed") {
      throw new Refused(data);
    } else if (!name && id) {
      this._last = id;
    }
  }

  _tell(detail) {
    this._sorted = null;
    this.dispatchEvent(new CustomEvent("change", { detail }));
  }

  _alive(live) {
    if (live === this.live) return;
    this.live = live;
    this.dispatchEvent(new CustomEvent("state", { detail: { live } }));
  }

  _keep() {
    // One record: rows without their id, or an id without its rows, would miss or repeat a change.
    const kept = { id: settings.url + this.path, last: this._last, columns: this._columns };
    return store("put", "views", { ...kept, rows: [...this._rows] });
  }
}

/** Send an event, or several; resolves when the server has them, also after hours offline. */
export async function send(topic, rows) {
  const waiting = { topic, body: JSON.stringify(Array.isArray(rows) ? rows : [rows]), key: unique() };
  const outcome = new Promise((resolve, reject) => outcomes.set(waiting.key, { resolve, reject }));
  await store("put", "sends", waiting);
  deliver();
  return outcome;
}

/** Return how many events wait to be sent. */
export async function pending() {
  return (await store("getAll", "sends")).length;
}

const outcomes = new Map();
let delivering = false, wanted = false;

async function deliver() {
  wanted = true;
  if (delivering) return;
  delivering = true;
  for (; wanted; await locked(drain)) wanted = false;
  delivering = false;
}

async function drain() {
  let pause = SHORTEST;
  for (let queue; (queue = await store("getAll", "sends")).length; ) {
    try {
      await post(queue[0]);
      pause = SHORTEST;
    } catch {
      await rest(pause);
      pause = Math.min(pause * 2, LONGEST);
    }
  }
}

async function post({ number, topic, body, key }) {
  const headers = { ...authorization(), "Content-Type": "application/json", "Idempotency-Key": key };
  const path = `${settings.url}/v1/topics/${encodeURIComponent(topic)}`;
  const response = await fetch(path, { method: "POST", headers, body });
  if (LATER.includes(response.status) || response.status >= 500) throw new Error("later");
  const answer = await response.json();
  await store("delete", "sends", number);
  const outcome = outcomes.get(key);
  outcomes.delete(key);
  if (response.ok) outcome?.resolve(answer);
  else if (outcome) outcome.reject(new Refused(answer));
  else globalThis.dispatchEvent?.(new CustomEvent("headwater-refused", { detail: { topic, body, ...answer } }));
}

/** What a server refuses: `message`, `detail`, `hint`. */
export class Refused extends Error {
  constructor({ title, detail, hint, status }) {
    super(title);
    Object.assign(this, { detail, hint, status });
  }
}

async function refusal(response) {
  if (response.status === 429 || response.status >= 500) return new Error("later");
  return new Refused(await response.json().catch(() => ({ title: response.statusText })));
}

function authorization() {
  return settings.token ? { Authorization: `Bearer ${settings.token}` } : {};
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece; !(piece = await reader.read()).done; ) {
    const parts = (text + piece.value).split("\n\n");
    text = parts.pop();
    yield parts.map(parse);
  }
}

function parse(part) {
  const event = { name: null, data: null, id: null };
  for (const line of part.split("\n")) {
    if (line.startsWith("id: ")) event.id = line.slice(4);
    else if (line.startsWith("event: ")) event.name = line.slice(7);
    else if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
  }
  return event;
}

function compare(a, b) {
  for (let at = 0; at < a.length; at++) {
    if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
  }
  return 0;
}

function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds * (0.5 + Math.random() / 2));
    const now = () => (clearTimeout(timer), resolve());
    globalThis.addEventListener?.("online", now, { once: true });
    signal?.addEventListener("abort", now, { once: true });
  });
}

function unique() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// One tab delivers at a time, so that events keep the order in which they were sent.
function locked(work) {
  return navigator.locks ? navigator.locks.request("headwater-sends", work) : work();
}

let database = null;

function open() {
  return (database ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("headwater", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("views", { keyPath: "id" });
      request.result.createObjectStore("sends", { keyPath: "number", autoIncrement: true });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  }));
}

async function store(method, name, ...values) {
  const transaction = (await open()).transaction(name, method.startsWith("get") ? "readonly" : "readwrite");
  const request = transaction.objectStore(name)[method](...values);
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

globalThis.addEventListener?.("online", () => deliver());
if (globalThis.indexedDB) deliver();
