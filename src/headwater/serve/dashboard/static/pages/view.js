// A view: its rows as a table that sorts and pages and shows changes as they come, and a chart of a column over time.

import { get, path } from "../api.js";
import { h, keep, show } from "../dom.js";
import { age, count, seconds } from "../format.js";
import { throttled } from "../live.js";
import { ColumnChart } from "../parts/column_chart.js";
import { lookup } from "../parts/lookup.js";
import { card, empty, facts, head } from "../parts/pieces.js";
import { RowTable } from "../parts/row_table.js";
import { link } from "../router.js";
import { follow } from "../sse.js";
import { store } from "../store.js";

export async function viewPage(main, { view: name }, signal) {
  const { views } = await get("views", { signal });
  const view = views.find((each) => each.name === name);
  if (!view) {
    const words =
      "There is no view of this name, or it has no rows yet: a pipeline makes its views in its first batch.";
    show(main, head({ crumb: [["Views", link("views")]], title: name }), card(null, {}, empty(words)));
    return;
  }
  const rows = new RowTable(view, signal);
  const chart = new ColumnChart(view, signal);
  const find = lookup(view);
  const live = { open: false };
  const draw = throttled(() => show(main, ...page(view, { rows, chart, find, live })), 200, signal);
  rows.changed = draw;
  const since = await rows.load();
  await chart.load();
  store.follow(draw, signal);
  await follow(path("views", name, "changes"), {
    signal,
    query: { since },
    state: (open) => {
      live.open = open;
      draw();
    },
    on: (type, value) => {
      if (type === "change") rows.apply(value);
      else rows.again(); // rebuilt, or more changes than were worth telling
      chart.again();
      draw();
    },
  });
}

function page(view, { rows, chart, find, live }) {
  const node = store.pipeline?.nodes.find((each) => each.name === view.name);
  const clock = node?.clock ?? view.clock;
  const maker = h("a", { href: link("pipelines", view.pipeline, "nodes", view.name) }, "The node that keeps it");
  return [
    head({
      crumb: [["Views", link("views")]],
      title: view.name,
      kind: `by ${view.key.join(", ")}`,
      lead: node?.doc,
      actions: [maker],
    }),
    facts([
      ["rows", count(node?.view_rows ?? view.rows)],
      ["right up to", clock ? `${seconds(Math.max(0, age(clock)))} ago` : null],
      ["version", count(view.version)],
      ["changes since opened", count(rows.seen)],
    ]),
    h(
      "div",
      { class: chart.element ? "two" : "stack", "data-key": "chart" },
      chart.element ? card("Over time", {}, keep(chart.element)) : null,
      card("Find a row", {}, keep(find)),
    ),
    card("Rows", { "data-key": "rows", aside: live.open ? "live" : "not connected; trying again" }, rows.draw()),
  ];
}
