// The graph on the page: nodes are links, edges lie below them. Nodes move only when the pipeline is another one or the
// window another width; every second only figures change.

import { h, s, show } from "../dom.js";
import { age, bytes, count, rate, seconds } from "../format.js";
import { link } from "../router.js";
import { given, health, isInput } from "./health.js";
import { curve, layout } from "./layout.js";

const NODE = { width: 220, height: 56 };
const BETWEEN = 14;
const ACROSS = { least: 64, most: 120 };

/** Draws pipelines into an element. */
export class Graph {
  #list;
  #sizes;
  #pipeline = null;
  #shape = "";
  #plan = null;
  #near = null;

  constructor(signal) {
    this.element = h("div", { class: "graph" });
    this.#list = h("ul", { class: "node-list" });
    this.#sizes = new ResizeObserver(() => this.#pipeline && this.update(this.#pipeline));
    this.#sizes.observe(this.element);
    signal.addEventListener("abort", () => this.#sizes.disconnect());
  }

  /** The list that stands for the graph in a narrow window. */
  get list() {
    return this.#list;
  }

  /** Show a pipeline as it is now. */
  update(pipeline) {
    this.#pipeline = pipeline;
    const nodes = new Map(pipeline.nodes.map((node) => [node.name, node]));
    const ails = new Map(pipeline.nodes.map((node) => [node.name, health(node, pipeline.attention)]));
    this.#arrange(pipeline.nodes);
    const plan = this.#plan;
    const size = { width: `${plan.width}px`, height: `${plan.height}px` };
    show(
      this.element,
      h(
        "div",
        { class: "canvas", style: size },
        s(
          "svg",
          { width: plan.width, height: plan.height, "aria-hidden": "true" },
          plan.edges.map((edge) => this.#edge(edge, nodes, ails)),
          plan.edges.map((edge) => edgeRate(edge, nodes)),
        ),
        plan.nodes.map((at) => this.#node(at, nodes.get(at.name), ails.get(at.name), pipeline.name)),
      ),
    );
    const order = [...plan.nodes].sort((one, other) => one.layer - other.layer || one.y - other.y);
    show(
      this.#list,
      order.map((at) => listed(nodes.get(at.name), ails.get(at.name), pipeline.name)),
    );
  }

  #arrange(nodes) {
    const room = this.element.clientWidth - 40;
    const shape = JSON.stringify([room, nodes.map((node) => [node.name, node.upstreams])]);
    if (shape === this.#shape) return;
    this.#shape = shape;
    const place = (across) => layout(nodes, { ...NODE, across, between: BETWEEN });
    const layers = 1 + Math.max(0, ...place(0).nodes.map((node) => node.layer));
    const across = (room - layers * NODE.width) / Math.max(1, layers - 1);
    this.#plan = place(Math.floor(Math.max(ACROSS.least, Math.min(ACROSS.most, across))));
  }

  #node({ x, y }, node, ail, pipeline) {
    const over = (name) => () => {
      this.#near = name;
      this.update(this.#pipeline);
    };
    return h(
      "a",
      {
        class: `node ${node.kind} ${ail.severity}`,
        "data-key": node.name,
        href: address(node, pipeline),
        "aria-label": sentence(node, ail),
        style: { left: `${x}px`, top: `${y}px`, width: `${NODE.width}px`, height: `${NODE.height}px` },
        onmouseenter: over(node.name),
        onmouseleave: over(null),
        onfocus: over(node.name),
        onblur: over(null),
      },
      h("span", { class: "name" }, h("span", { class: `sign ${ail.severity}` }), h("b", {}, node.name)),
      h(
        "span",
        { class: "figures-line" },
        figures(node, ail).map((each, at) => h("span", { class: at === 0 && ail.text ? "ails" : null }, each)),
      ),
    );
  }

  #edge({ from, to, points }, nodes, ails) {
    const flow = given(nodes.get(from));
    const near = this.#near === from || this.#near === to;
    const held = nodes.get(to).waits_for === from && ails.get(to).severity === "waiting";
    const width = 1 + Math.min(3, Math.log10(1 + (flow ?? 0)));
    return s("path", {
      class: `edge${flow ? "" : " still"}${held ? " held" : ""}${near ? " near" : ""}`,
      d: curve(points),
      "stroke-width": width.toFixed(1),
    });
  }
}

function edgeRate({ from, points }, nodes) {
  const flow = given(nodes.get(from));
  if (flow === null || flow === undefined) return null;
  const end = points.at(-1);
  return s("text", { class: "edge-rate", x: end.x - 6, y: end.y + 4 }, `${rate(flow)}/s`);
}

/** A node's page; the page of its topic where nothing is computed. */
export function address(node, pipeline) {
  return isInput(node) ? link("topics", node.topic ?? node.name) : link("pipelines", pipeline, "nodes", node.name);
}

/** What stands below a node's name: what ails it or how much it has, how many records it has not read, its clock. */
function figures(node, ail) {
  const clock =
    node.clock === null || node.clock === undefined ? "no clock" : `clock ${brief(Math.max(0, age(node.clock)))}`;
  if (isInput(node)) return [ail.text || [count(node.rows), ...(node.upstreams ?? [])].join(" ← "), clock];
  const kept =
    node.kind === "view" && node.view_rows !== null && node.view_rows !== undefined
      ? `${count(node.view_rows)} rows`
      : node.state_bytes
        ? bytes(node.state_bytes)
        : "";
  return [ail.text || kept, `lag ${count(node.lag)}`, clock].filter(Boolean);
}

function sentence(node, ail) {
  const reads = node.upstreams?.length ? `, reads ${node.upstreams.join(" and ")}` : "";
  return [`${node.name}, ${node.kind}${reads}`, ...figures(node, ail)].filter(Boolean).join(", ");
}

function listed(node, ail, pipeline) {
  const [first, ...rest] = figures(node, ail);
  return h(
    "li",
    { "data-key": node.name },
    h(
      "a",
      { class: ail.severity, href: address(node, pipeline) },
      h(
        "span",
        { class: "line" },
        h("span", { class: `sign ${ail.severity}` }),
        h("b", {}, node.name),
        h("span", { class: "right" }, given(node) === null ? "" : `${rate(given(node))}/s`),
      ),
      h(
        "span",
        { class: "line below" },
        h("span", {}, node.upstreams?.length ? `← ${node.upstreams.join(", ")}` : node.kind),
        h(
          "span",
          { class: "right" },
          h("span", { class: ail.text ? "ails" : null }, first),
          rest.map((each) => ` · ${each}`),
        ),
      ),
    ),
  );
}

/** A length of time by its largest unit alone: there is little room in a node. */
function brief(length) {
  return seconds(length).split(" ").slice(0, 2).join(" ");
}
