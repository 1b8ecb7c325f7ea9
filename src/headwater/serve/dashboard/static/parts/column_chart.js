// A numeric column of a view over one of its time columns: of all keys together, or of one.

import { get, path } from "../api.js";
import { TimeChart } from "../charts.js";
import { h } from "../dom.js";
import { cell, instant, isNumber, isTime } from "../format.js";
import { throttled } from "../live.js";

const POINTS = 2000;
const CHOICES = 200;
const AGAIN = 5000;
const ALL = ["sum of all", "mean of all"];

/** A chart with what to choose above it; its element is null where a view has no time or no number. */
export class ColumnChart {
  #rows = [];
  #others;
  #drawn = "";

  constructor(view, signal) {
    const times = view.columns.filter((column) => isTime(column.type)).map((column) => column.name);
    times.sort((one, other) => (other === "window_start") - (one === "window_start"));
    const numbers = view.columns
      .filter((column) => column.numeric ?? isNumber(column.type))
      .map((column) => column.name)
      .filter((name) => !view.key.includes(name));
    Object.assign(this, { view, signal, element: null });
    this.again = throttled(() => this.load().catch(() => {}), AGAIN, signal);
    if (!times.length || !numbers.length) return;
    this.time = choice("over", times, () => this.load().catch(() => {}));
    this.value = choice("column", numbers, () => this.#draw());
    this.#others = view.key.filter((column) => !times.includes(column));
    this.of = choice(this.#others.join(", ") || "of", ALL, () => this.#draw());
    this.says = h("span", { class: "soft small hovered" });
    this.chart = new TimeChart({
      label: "column over time",
      format: (value) => cell(value),
      height: 200,
      bars: true,
      signal,
      hover: (at) => this.#hover(at),
    });
    this.element = h(
      "div",
      { class: "stack" },
      h("div", { class: "row" }, this.value.label, this.time.label, this.of.label, this.says),
      this.chart.element,
    );
  }

  /** Load the newest rows. */
  async load() {
    if (this.element === null) return;
    const query = { order: this.time.select.value, desc: "true", limit: POINTS };
    this.#rows = (await get(path("views", this.view.name), { signal: this.signal, query })).rows;
    this.of.offer([...new Set(this.#rows.map((row) => this.#name(row)))].sort().slice(0, CHOICES));
    this.#draw();
  }

  #name(row) {
    return this.#others.map((column) => cell(row[column])).join(", ");
  }

  #draw() {
    const [column, over, of] = [this.value.select.value, this.time.select.value, this.of.select.value];
    const groups = new Map();
    for (const row of this.#rows) {
      const at = instant(row[over]);
      if (at === null || (row[column] ?? null) === null || !(ALL.includes(of) || this.#name(row) === of)) continue;
      const second = at.getTime() / 1000;
      groups.set(second, [...(groups.get(second) ?? []), Number(row[column])]);
    }
    const times = [...groups.keys()].sort((one, other) => one - other);
    const fold = (values) => values.reduce((sum, each) => sum + each, 0) / (of === ALL[1] ? values.length : 1);
    const values = times.map((each) => fold(groups.get(each)));
    const drawn = JSON.stringify([times, values]);
    if (drawn !== this.#drawn) this.chart.set(times, values);
    this.#drawn = drawn;
  }

  #hover(at) {
    this.says.textContent =
      at === null ? "" : `${new Date(at.time * 1000).toLocaleString("en-GB")}: ${cell(at.value)}`;
  }
}

function choice(name, options, changed) {
  const select = h(
    "select",
    { onchange: changed },
    options.map((each) => h("option", { value: each }, each)),
  );
  const offer = (wanted) => {
    const present = new Set([...select.options].map((each) => each.value));
    for (const each of wanted) if (!present.has(each)) select.append(h("option", { value: each }, each));
  };
  return { select, offer, label: h("label", { class: "fixed" }, h("span", {}, name), select) };
}
