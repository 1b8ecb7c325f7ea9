// The rows of a view, a page at a time in the order of any column: the server sorts and pages, so that it is the order of
// all rows. A change marks its row as it comes; where it moves rows, the page is asked for again, not too often.

import { get, path } from "../api.js";
import { h } from "../dom.js";
import { cell, count, isNumber, isTime, places } from "../format.js";
import { throttled } from "../live.js";
import { empty, scrolling } from "./pieces.js";

const PAGE = 25;
const MARKED = 3000;
const AGAIN = 1500;
const FEW = 10; // rows that are marked at once: where most change, a mark says nothing
const SMALL = 50_000; // of larger views a page is not sorted anew at every change

/** A page of a view's rows. */
export class RowTable {
  seen = 0;
  changed = () => {};
  #rows = [];
  #marks = new Map();
  #starts = [null];
  #next = null;
  #sort = null;

  constructor(view, signal) {
    Object.assign(this, { view, signal });
    this.again = throttled(() => this.load().catch(() => {}), AGAIN, signal);
    const time =
      view.columns.find((column) => column.name === "window_start") ??
      view.columns.find((column) => isTime(column.type));
    if (time && view.rows <= SMALL) this.#sort = { name: time.name, down: true };
  }

  /** Load the page; returns up to which change it is right. */
  async load() {
    const order = this.#sort ? { order: this.#sort.name, desc: this.#sort.down ? "true" : null } : {};
    const query = { limit: PAGE, cursor: this.#starts.at(-1), ...order };
    const page = await get(path("views", this.view.name), { signal: this.signal, query });
    this.#rows = page.rows;
    this.#next = page.next ?? null;
    this.changed();
    return page.sequence;
  }

  /** Show a change of the view. */
  apply({ old, new: now }) {
    this.seen += 1;
    const key = this.#key(now ?? old);
    this.#marks.set(key, performance.now());
    const at = this.#rows.findIndex((row) => this.#key(row) === key);
    if (at >= 0 && now) this.#rows[at] = now;
    if (this.view.rows <= SMALL || at >= 0) this.again();
  }

  /** The table and its pager. */
  draw() {
    if (!this.#rows.length && this.#starts.length === 1)
      return [empty("No rows yet. They appear here as soon as the node commits some.")];
    return [this.#table(), this.#pager()];
  }

  #table() {
    const { columns } = this.view;
    const points = new Map(columns.map((column) => [column, this.#places(column)]));
    const value = (row, column) =>
      h(
        "td",
        { class: this.#isFigure(column) ? "number" : "clip" },
        cell(row[column.name], column.type, points.get(column)),
      );
    const few = this.#rows.filter((row) => this.#marked(this.#key(row))).length <= FEW;
    const line = (row) =>
      h(
        "tr",
        { "data-key": this.#key(row), class: few && this.#marked(this.#key(row)) ? "new" : null },
        columns.map((column) => value(row, column)),
      );
    const heads = h(
      "tr",
      {},
      columns.map((column) => this.#heading(column)),
    );
    return scrolling("Rows", h("table", {}, h("thead", {}, heads), h("tbody", {}, this.#rows.map(line))));
  }

  /** A number that is no name of something. */
  #isFigure(column) {
    return numeric(column) && !this.view.key.includes(column.name);
  }

  #places(column) {
    return numeric(column) ? places(this.#rows.map((row) => row[column.name])) : null;
  }

  #heading(column) {
    const sorted = this.#sort?.name === column.name ? (this.#sort.down ? "descending" : "ascending") : null;
    const choose = () => {
      this.#sort = { name: column.name, down: sorted === "ascending" };
      this.#go([null]);
    };
    const button = h("button", { type: "button", onclick: choose }, column.name);
    return h("th", { scope: "col", class: this.#isFigure(column) ? "number" : null, "aria-sort": sorted }, button);
  }

  #pager() {
    const first = (this.#starts.length - 1) * PAGE;
    const back = () => this.#go(this.#starts.slice(0, -1));
    const on = () => this.#go([...this.#starts, this.#next]);
    return h(
      "div",
      { class: "pager" },
      h("button", { disabled: this.#starts.length === 1, onclick: back }, "Previous"),
      h("button", { disabled: this.#next === null, onclick: on }, "Next"),
      h("span", { class: "aside" }, `${count(first + 1)}–${count(first + this.#rows.length)}`),
    );
  }

  #go(starts) {
    this.#starts = starts;
    this.load().catch(() => {});
  }

  #marked(key) {
    return performance.now() - (this.#marks.get(key) ?? -MARKED) < MARKED;
  }

  #key(row) {
    return JSON.stringify(this.view.key.map((column) => row[column]));
  }
}

function numeric(column) {
  return column.numeric ?? isNumber(column.type);
}
