// Every row accounted for: rows in = used + late + duplicate + dead. Where the server's figures would not add up, that is
// said, not drawn over.

import { h } from "../dom.js";
import { count } from "../format.js";

const PARTS = [
  ["used", "used", "used"],
  ["late", "late", "late-part"],
  ["duplicates", "duplicate", "duplicate-part"],
  ["dead", "dead", "dead-part"],
];

/** A bar of what became of the rows, with its legend. */
export function accounting(figures) {
  const sum = PARTS.reduce((total, [name]) => total + (figures[name] ?? 0), 0);
  const words = PARTS.map(([name, word]) => `${count(figures[name] ?? 0)} ${word}`).join(", ");
  return [
    h(
      "div",
      { class: "bar", role: "img", "aria-label": `${count(figures.rows)} rows in: ${words}` },
      figures.rows
        ? PARTS.filter(([name]) => figures[name]).map(([name, , colour]) =>
            h("i", { class: colour, style: { flex: `${figures[name]} 0 0` } }),
          )
        : h("i", { class: "duplicate-part", style: { flex: "1" } }),
    ),
    h(
      "p",
      { class: "legend" },
      h("span", {}, h("b", {}, count(figures.rows)), " in ="),
      PARTS.map(([name, word, colour]) =>
        h("span", {}, h("i", { class: colour }), h("b", {}, count(figures[name] ?? 0)), ` ${word}`),
      ),
      sum === figures.rows
        ? null
        : h("span", { class: "is-dead" }, `these add up to ${count(sum)}: please report it`),
    ),
  ];
}
