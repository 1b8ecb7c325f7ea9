// How late rows came: one bar for each length of time, and how much of all would be on time if one waited so long.

import { h } from "../dom.js";
import { count, percent, seconds } from "../format.js";

/** Bars for counts between bounds (seconds); counts has one more than bounds: what is beyond the last. */
export function histogram({ bounds, counts: all }) {
  const counts = all.slice(0, 1 + all.findLastIndex(Boolean)); // beyond that there is nothing
  const total = counts.reduce((sum, each) => sum + each, 0);
  const most = Math.max(1, ...counts);
  let until = 0;
  const heads = h(
    "li",
    { class: "heads" },
    ["late by", "", "rows", "so far"].map((each) => h("span", {}, each)),
  );
  return h(
    "ul",
    { class: "histogram" },
    heads,
    counts.map((each, at) => {
      until += each;
      return h(
        "li",
        {},
        h("span", { class: "bound" }, name(bounds, at)),
        h(
          "span",
          {},
          h("span", {
            class: `length ${each ? "" : "none"}`,
            style: { display: "block", width: `${(100 * each) / most}%` },
          }),
        ),
        h("span", { class: "many" }, count(each)),
        h("span", { class: "many soft" }, percent(total ? until / total : null)),
      );
    }),
  );
}

function name(bounds, at) {
  const text = (bound) =>
    seconds(bound)
      .replace(/(\.\d*?)0+ s$/, "$1 s")
      .replace(". s", " s");
  if (at >= bounds.length) return `> ${text(bounds.at(-1) ?? 0)}`;
  return bounds[at] <= 0 ? "on time" : `≤ ${text(bounds[at])}`;
}
