// Server-Sent Events over fetch: the browser's EventSource cannot send a token. `EventParser` is the grammar of the
// format alone, so that it can be tested; `follow` reconnects from the last id, which makes a lost connection a delay
// and not a gap.

import { Problem, send } from "./api.js";

const RETRY = 1000;

/** Turns pieces of text, cut anywhere, into events. */
export class EventParser {
  /** The last id that was told, also by an event without data, which is a sign of life. */
  id = null;
  #rest = "";
  #event = fresh();

  /** The events that are whole after another piece. */
  push(text) {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line) {
    if (line === "") {
      const { type, data } = this.#event;
      this.#event = fresh();
      return data.length ? [{ type, id: this.id, data: data.join("\n") }] : [];
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (name === "data") this.#event.data.push(value);
    else if (name === "event") this.#event.type = value;
    else if (name === "id") this.id = value;
    return [];
  }
}

function fresh() {
  return { type: "message", data: [] };
}

/** Call `on(type, value, id)` for every event at a path until the signal; `state(open)` tells whether it is connected. */
export async function follow(where, { query, signal, on, state = () => {} }) {
  let id = null;
  while (!signal.aborted) {
    try {
      const resume = id === null ? {} : { "Last-Event-ID": id };
      const answer = await send(where, { query, signal, headers: { Accept: "text/event-stream", ...resume } });
      state(true);
      const parser = new EventParser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        for (const event of parser.push(value)) on(event.type, JSON.parse(event.data), event.id);
        id = parser.id ?? id;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [400, 403, 404, 406, 410].includes(error.status)) throw error;
    }
    state(false);
    await new Promise((done) => setTimeout(done, RETRY));
  }
}
