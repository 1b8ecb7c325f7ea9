// The newest changes of a view as they come: what a column was is struck out beside what it is.

import { h } from "../dom.js";
import { cell, isNumber } from "../format.js";
import { throttled } from "../live.js";
import { follow } from "../sse.js";
import { path } from "../api.js";
import { card, empty, scrolling } from "./pieces.js";

const SHOWN = 12;

/** Follows a view; `changes` are the newest, first the last. */
export class ChangeFeed {
  changes = [];
  connected = false;
  #failed = null;

  constructor(view, signal, changed = () => {}) {
    this.view = view;
    const tell = throttled(changed, 200, signal);
    follow(path("views", view.name, "changes"), {
      signal,
      query: { since: view.sequence ?? null },
      state: (open) => {
        this.connected = open;
        tell();
      },
      on: (type, value) => {
        if (type !== "change") return;
        this.changes = [value, ...this.changes].slice(0, SHOWN);
        tell();
      },
    }).catch((error) => {
      this.#failed = error;
      tell();
    });
  }

  /** The changes in a card. */
  card() {
    const words = this.#failed
      ? this.#failed.message
      : this.connected
        ? "Nothing has changed since this page was opened."
        : "Connecting …";
    return card(
      "Changes, live",
      { aside: this.connected ? "as they are committed" : "not connected" },
      this.changes.length ? this.#table() : empty(words),
    );
  }

  #table() {
    const { columns } = this.view;
    return scrolling(
      "Changes",
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map((column) => h("th", { scope: "col", class: numeric(column) ? "number" : null }, column.name)),
          ),
        ),
        h(
          "tbody",
          {},
          this.changes.map((change) =>
            h(
              "tr",
              { "data-key": `${change.sequence}-${JSON.stringify(change.key)}`, class: change.new ? "new" : "gone" },
              columns.map((column) => difference(column, change)),
            ),
          ),
        ),
      ),
    );
  }
}

function numeric(column) {
  return column.numeric ?? isNumber(column.type);
}

function difference(column, { old, new: now }) {
  const row = now ?? old ?? {};
  const before =
    old && now && JSON.stringify(old[column.name]) !== JSON.stringify(now[column.name])
      ? h("del", {}, cell(old[column.name], column.type))
      : null;
  return h("td", { class: numeric(column) ? "number" : "clip" }, before, cell(row[column.name], column.type));
}
