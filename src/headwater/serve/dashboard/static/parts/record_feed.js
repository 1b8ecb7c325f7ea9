// The records of a topic: the newest as they come, or those that somebody searches for by key, offset or time.

import { get, path } from "../api.js";
import { h, keep } from "../dom.js";
import { cell, isNumber } from "../format.js";
import { throttled } from "../live.js";
import { follow } from "../sse.js";
import { card, empty, moment, problem, scrolling } from "./pieces.js";

const SHOWN = 15;
const FEW = 5; // records a second that can be told apart, and so are marked

/** Shows records of a topic; follows its end until somebody searches. */
export class RecordFeed {
  changed = () => {};
  #records = [];
  #found = null;
  #next = null;
  #failed = null;
  #open = false;
  #query = null;
  #arrivals = [];
  #tell;

  constructor(topic, signal) {
    Object.assign(this, { topic, signal });
    this.#tell = throttled(() => this.changed(), 200, signal);
    this.form = this.#searchForm();
    this.#begin().catch((error) => {
      if (signal.aborted) return; // who has left the page waits for nothing
      this.#failed = error;
      this.#tell();
    });
  }

  /** The records in a card. */
  card() {
    const rows = this.#found ?? this.#records;
    const title = this.#found === null ? "Newest records" : "Found records";
    const aside =
      this.#found === null
        ? this.#open
          ? "live"
          : "connecting …"
        : h("button", { onclick: () => this.#search(null) }, "Back to the newest");
    return card(
      title,
      { "data-key": "records", aside },
      keep(this.form),
      this.#failed ? problem(this.#failed) : null,
      rows.length ? this.#table(rows) : empty(this.#found === null ? "No record has come yet." : "No record fits."),
      this.#found !== null && this.#next !== null
        ? h(
            "div",
            { class: "pager" },
            h("button", { onclick: () => this.#search({ ...this.#query, from: this.#next }) }, "Next"),
          )
        : null,
    );
  }

  async #begin() {
    const where = `${path("topics", this.topic.name)}/records`;
    const ends = this.topic.partitions.map(({ partition, earliest, end }) => ({
      partition,
      from: Math.max(earliest, end - SHOWN),
      end,
    }));
    const pages = await Promise.all(
      ends
        .filter((each) => each.end > each.from)
        .map(({ partition, from }) => get(where, { signal: this.signal, query: { partition, from, limit: SHOWN } })),
    );
    this.#take(pages.flatMap((page) => page.records));
    await follow(where, {
      signal: this.signal,
      query: { from: "latest" },
      state: (open) => {
        this.#open = open;
        this.#tell();
      },
      on: (type, value) => {
        if (value && value.offset !== undefined) this.#take([value], this.#isOneOfFew());
      },
    });
  }

  #isOneOfFew() {
    const now = performance.now();
    this.#arrivals = [...this.#arrivals.filter((each) => each > now - 1000), now];
    return this.#arrivals.length <= FEW;
  }

  #take(records, fresh = false) {
    const known = new Map(this.#records.map((each) => [`${each.partition}-${each.offset}`, each]));
    for (const each of records)
      if (!known.has(`${each.partition}-${each.offset}`))
        known.set(`${each.partition}-${each.offset}`, { ...each, fresh });
    this.#records = [...known.values()]
      .sort((one, other) =>
        one.received === other.received ? other.offset - one.offset : one.received < other.received ? 1 : -1,
      )
      .slice(0, SHOWN);
    this.#tell();
  }

  #table(rows) {
    const columns = (this.topic.schema ?? []).map((column) => column.name);
    const types = Object.fromEntries((this.topic.schema ?? []).map((column) => [column.name, column.type]));
    const named = columns.length > 0;
    return scrolling(
      "Records",
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "partition"),
            h("th", { scope: "col", class: "number" }, "offset"),
            h("th", { scope: "col" }, "received"),
            named
              ? columns.map((name) => h("th", { scope: "col", class: isNumber(types[name]) ? "number" : null }, name))
              : h("th", { scope: "col" }, "value"),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              { "data-key": `${row.partition}-${row.offset}`, class: row.fresh ? "new" : null },
              h("td", {}, row.partition),
              h("td", { class: "number" }, row.offset),
              h("td", {}, moment(row.received)),
              named && row.value !== null && typeof row.value === "object"
                ? columns.map((name) =>
                    h("td", { class: isNumber(types[name]) ? "number" : "clip" }, cell(row.value[name], types[name])),
                  )
                : h(
                    "td",
                    { class: "wrap", colspan: Math.max(1, columns.length) },
                    row.value === null ? `deleted: ${cell(row.key)}` : cell(row.value),
                  ),
            ),
          ),
        ),
      ),
    );
  }

  #searchForm() {
    const by = h(
      "select",
      { name: "by" },
      [
        ["key", "key"],
        ["offset", "offset"],
        ["time", "time"],
      ].map(([value, text]) => h("option", { value }, text)),
    );
    const what = h("input", { name: "what", required: true, autocomplete: "off", placeholder: "key" });
    by.onchange = () => {
      what.placeholder = {
        key: "key",
        offset: "offset, such as 3817",
        time: "2026-01-31T18:00:00Z, or 10 minutes ago",
      }[by.value];
    };
    const partition = h(
      "select",
      { name: "partition" },
      h("option", { value: "" }, "all"),
      this.topic.partitions.map((each) => h("option", { value: String(each.partition) }, String(each.partition))),
    );
    const submit = (event) => {
      event.preventDefault();
      const query = by.value === "key" ? { key: what.value } : { from: what.value.trim() };
      this.#search({
        ...query,
        partition: partition.value || (by.value === "offset" && this.topic.partitions.length === 1 ? "0" : null),
      });
    };
    return h(
      "form",
      { class: "row", onsubmit: submit, role: "search", "aria-label": "Search records" },
      h("label", { class: "fixed" }, h("span", {}, "search by"), by),
      h("label", {}, h("span", {}, "for"), what),
      h("label", { class: "fixed" }, h("span", {}, "partition"), partition),
      h("button", { type: "submit" }, "Search"),
    );
  }

  async #search(query) {
    this.#query = query;
    this.#failed = null;
    this.#found = query === null ? null : [];
    try {
      if (query !== null) {
        const page = await get(`${path("topics", this.topic.name)}/records`, {
          signal: this.signal,
          query: { ...query, limit: SHOWN },
        });
        [this.#found, this.#next] = [page.records, page.next ?? null];
      }
    } catch (error) {
      this.#failed = error;
    }
    this.changed();
  }
}
