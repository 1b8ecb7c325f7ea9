// Every request of the page goes through here: the token, problems as errors that say what to do, and whether the
// server can be reached. A server that asks for a token (401) is answered once for all requests that wait.

const BASE = new URL("v1/", document.baseURI);
const KEY = "headwater-token";
const PATIENCE = 15_000;

/** What the server refused, and why (RFC 9457). */
export class Problem extends Error {
  constructor(status, document) {
    super(document?.title ?? `the server answered ${status}`);
    this.status = status;
    this.detail = document?.detail ?? null;
    this.hint = document?.hint ?? null;
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

/** Whether the server answers: `lost` and `back` events; and `token`, when another token is shown to it. */
export const connection = new EventTarget();
let lost = false;

let asking = null;
let ask = () => Promise.reject(new Problem(401, { title: "a token is needed" }));

/** Set what asks a person for a token: a function of what the server said, that promises the token. */
export function onTokenNeeded(question) {
  ask = question;
}

/** Whether a token is shown to the server. */
export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Show the server no token from now on, so that it asks for one. */
export function forgetToken() {
  sessionStorage.removeItem(KEY);
  location.reload();
}

/** A path of the API, each part quoted. */
export function path(...parts) {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

/** The JSON at a path. */
export async function get(where, { signal, query } = {}) {
  return (await send(where, { query, signal })).json();
}

/** What the server answers to a body in JSON. */
export async function post(where, body, { signal, headers } = {}) {
  const json = { "Content-Type": "application/json", ...headers };
  const answer = await send(where, { method: "POST", signal, headers: json, body: JSON.stringify(body ?? {}) });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** The response itself, whose body is read as it comes; patience ends with its head. */
export async function send(where, { query, signal, headers, ...rest } = {}) {
  const url = new URL(where, BASE);
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== null && value !== undefined && value !== "") url.searchParams.append(name, value);
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const authorization = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await reach(
      url,
      { ...rest, headers: { Accept: "application/json", ...headers, ...authorization } },
      signal,
    );
    if (answer.ok) return answer;
    const problem = new Problem(answer.status, await answer.json().catch(() => null));
    if (answer.status !== 401) throw problem;
    if (sessionStorage.getItem(KEY) === token) await renew(problem, token !== null);
  }
}

async function renew(problem, refused) {
  asking ??= ask(problem, refused).finally(() => {
    asking = null;
  });
  const token = await asking;
  if (sessionStorage.getItem(KEY) === token) return; // of those who waited for it, one stores it
  sessionStorage.setItem(KEY, token);
  connection.dispatchEvent(new Event("token"));
}

async function reach(url, request, signal) {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE);
  const signals = [patience.signal, signal].filter(Boolean);
  try {
    const answer = await fetch(url, { ...request, signal: AbortSignal.any(signals), cache: "no-store" });
    tell(false);
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    tell(true);
    throw new Unreachable("the server does not answer");
  } finally {
    clearTimeout(timer);
  }
}

function tell(now) {
  if (now === lost) return;
  lost = now;
  connection.dispatchEvent(new Event(now ? "lost" : "back"));
}
