// A figure of a node: its number now, and a chart of how it was; and the choice of how far back that goes.

import { TimeChart } from "../charts.js";
import { h } from "../dom.js";
import { time } from "../format.js";

const SPANS = [
  [900, "15 min"],
  [3600, "1 h"],
  [21600, "6 h"],
  [86400, "24 h"],
];

/** A figure now, and how it was. */
export class Figure {
  constructor([name, label, format, value], signal) {
    Object.assign(this, { name, label, format, value });
    this.number = h("div", { class: "value" }, "–");
    this.caption = h("div", { class: "label" }, label);
    this.chart = new TimeChart({ label, format, signal, hover: (at) => this.#hover(at) });
    this.element = h(
      "div",
      { class: "card figure", "data-key": name },
      this.caption,
      this.number,
      this.chart.element,
    );
    this.last = null;
  }

  now(node) {
    this.last = this.value(node);
    if (!this.hovered) this.#write(this.last, this.label);
  }

  past(history) {
    const first = Math.max(
      0,
      history.rate.findIndex((each) => each !== null),
    ); // nothing is known of before
    this.chart.set(
      history.time.slice(first),
      (history[this.name] ?? []).slice(first).map((each) => each ?? null),
    );
  }

  #hover(at) {
    this.hovered = at !== null && at.value !== null && at.value !== undefined;
    this.#write(this.hovered ? at.value : this.last, this.hovered ? `${this.label}, ${time(at.time)}` : this.label);
  }

  #write(value, label) {
    this.number.textContent = this.format(value);
    this.caption.textContent = label;
  }
}

/** Which part of the past is looked at. */
export class Spans {
  constructor(changed) {
    this.seconds = 900;
    const buttons = SPANS.map(([length, text]) =>
      h("button", { "aria-pressed": String(length === this.seconds), onclick: () => choose(length) }, text),
    );
    const choose = (length) => {
      this.seconds = length;
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(SPANS[at][0] === length)));
      changed();
    };
    this.element = h(
      "div",
      { class: "spans", role: "group", "aria-label": "How far back", "data-key": "spans" },
      buttons,
    );
  }
}
