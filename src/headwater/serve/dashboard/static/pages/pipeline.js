// The page that an operator keeps open: what needs attention, then the whole pipeline.

import { h, keep, show } from "../dom.js";
import { Graph } from "../graph/draw.js";
import { card, empty, head, problem } from "../parts/pieces.js";
import { store } from "../store.js";
import { attention } from "./attention.js";

export function pipelinePage(main, _parameters, signal) {
  const graph = new Graph(signal);
  store.follow(() => {
    const { pipeline } = store;
    if (pipeline === null || pipeline.problem) {
      show(main, ...without(pipeline));
      return;
    }
    show(
      main,
      h("h1", { class: "visually-hidden", tabindex: "-1" }, `Pipeline ${pipeline.name}`),
      card("Needs attention", { "data-key": "attention" }, attention(pipeline)),
      card(
        `${pipeline.name}, in the direction of the data`,
        { "data-key": "graph" },
        keep(graph.element),
        legend(),
        keep(graph.list),
      ),
    );
    graph.update(pipeline);
  }, signal);
}

function without(pipeline) {
  if (pipeline?.problem) return [head({ title: pipeline.name }), problem(pipeline.problem)];
  if (store.pipelines === null)
    return store.problem
      ? [head({ title: "Pipelines are not shown" }), problem(store.problem)]
      : [empty("Loading …")];
  if (store.pipelines.length) return [empty("Loading …")];
  return [
    head({ title: "No pipeline yet" }),
    card(
      null,
      {},
      empty(
        "This server knows no pipeline, so it shows topics alone. Start it with the file of one, as ",
        h("code", {}, "headwater serve shop.py"),
        ", or run and serve at once: ",
        h("code", {}, "headwater run shop.py --serve"),
        ".",
      ),
    ),
  ];
}

function legend() {
  return h(
    "p",
    { class: "key" },
    h("span", {}, h("i", { class: "swatch source" }), "source or table"),
    h("span", {}, h("i", { class: "swatch" }), "computed"),
    h("span", {}, h("i", { class: "sign waiting" }), "waits"),
    h("span", {}, h("i", { class: "sign late" }), "late rows"),
    h("span", {}, h("i", { class: "sign dead" }), "dead rows or broken"),
    h("span", {}, "lines: rows a second"),
    h("span", {}, "clock: event time behind wall time"),
  );
}
