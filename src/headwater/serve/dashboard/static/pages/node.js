// A node: what it is for, how it does, what became of its rows, what it gives, and how it is written.

import { get, path } from "../api.js";
import { h, keep, show } from "../dom.js";
import { age, bytes, count, rate, seconds } from "../format.js";
import { address } from "../graph/draw.js";
import { health, isInput } from "../graph/health.js";
import { poll } from "../live.js";
import { accounting } from "../parts/accounting.js";
import { ChangeFeed } from "../parts/change_feed.js";
import { Figure, Spans } from "../parts/figure.js";
import { histogram } from "../parts/histogram.js";
import { lookup } from "../parts/lookup.js";
import { actions } from "../parts/node_operations.js";
import { NotifyMe } from "../parts/notify_me.js";
import { card, empty, head, moment, problem } from "../parts/pieces.js";
import { setAside, setAsideCards } from "../parts/set_aside.js";
import { sourceCode } from "../parts/source_code.js";
import { may } from "../permissions.js";
import { link } from "../router.js";
import { store } from "../store.js";
import { attention } from "./attention.js";

const FIGURES = [
  ["rate", "rows a second", rate, (node) => node.rate],
  ["batch_seconds", "a batch takes", seconds, (node) => node.batch_seconds],
  [
    "clock_behind",
    "event time behind wall time",
    seconds,
    (node) => (node.clock ? Math.max(0, age(node.clock)) : null),
  ],
  ["lag", "records not read yet", count, (node) => node.lag],
  ["state_bytes", "state", bytes, (node) => node.state_bytes],
];

export async function nodePage(main, { pipeline, node: name }, signal) {
  const where = path("pipelines", pipeline, "nodes", name);
  const charts = FIGURES.map((figure) => new Figure(figure, signal));
  const spans = new Spans(() => rounds.history());
  const kept = { late: null, dead: null, lateness: null };
  let node = await get(where, { signal });
  const feed = node.kind === "view" ? await viewParts(name, signal) : null;
  let notify = null;
  const draw = () => show(main, ...sections(node, { pipeline, charts, spans, kept, feed, notify }));
  const rounds = {
    node: poll(
      async () => {
        node = await get(where, { signal });
        charts.forEach((each) => each.now(node));
        if (node.target === "push" && may("operate")) notify ??= new NotifyMe(pipeline);
        draw();
      },
      1,
      signal,
      (error) => error.status && show(main, head({ title: name }), problem(error)),
    ),
    history: poll(async () => charts.forEach(await history(pipeline, name, spans.seconds, signal)), 5, signal),
    lateness: poll(
      async () => {
        kept.lateness = store.pipeline === null ? null : await latenessOf(node, signal);
      },
      10,
      signal,
    ),
    kept: poll(
      async () => {
        Object.assign(kept, await setAside(where, node, signal));
        draw();
      },
      5,
      signal,
    ),
  };
  store.follow(() => {
    draw();
    if (kept.lateness === null && store.pipeline !== null) rounds.lateness(); // what it depends on is known now
  }, signal);
}

async function history(pipeline, node, since, signal) {
  const past = await get(path("pipelines", pipeline, "history"), { query: { node, since, points: 240 }, signal });
  return (each) => each.past(past);
}

async function viewParts(name, signal) {
  const { views } = await get("views", { signal });
  const view = views.find((each) => each.name === name);
  if (!view) return null;
  return { changes: new ChangeFeed(view, signal), find: lookup(view), view };
}

function sections(node, { pipeline, charts, spans, kept, feed, notify }) {
  const ail = health(node, store.pipeline?.attention ?? []);
  const said = (store.pipeline?.attention ?? []).filter((each) => each.node === node.name);
  return [
    head({
      crumb: [[pipeline, link("pipelines", pipeline)]],
      title: node.name,
      kind: [node.kind, node.key?.length ? ` by ${node.key.join(", ")}` : ""].join(""),
      lead: node.doc,
      actions: actions(node, pipeline),
    }),
    said.length
      ? card(
          "Needs attention",
          { "data-key": "attention" },
          attention({ name: pipeline, running: true, nodes: [], attention: said }),
        )
      : null,
    notify ? keep(notify.element) : null,
    h("div", { class: "bench", "data-key": "bench" }, state(node, ail, pipeline), keep(spans.element)),
    h(
      "div",
      { class: "figures", "data-key": "figures" },
      charts.map((each) => keep(each.element)),
    ),
    node.accounting
      ? card("Every row accounted for", { "data-key": "accounting" }, accounting(node.accounting))
      : null,
    feed
      ? h(
          "div",
          { class: "two", "data-key": "feed" },
          feed.changes.card(node),
          card(
            "Find a row",
            {},
            keep(feed.find),
            h("p", {}, h("a", { href: link("views", node.name) }, "All rows of the view")),
          ),
        )
      : null,
    h("div", { class: "half", "data-key": "rows" }, latenessCard(kept.lateness), setAsideCards(node, kept, pipeline)),
    node.source
      ? card(
          "Source",
          { "data-key": "source", aside: node.file ? `${node.file}:${node.line}` : null },
          sourceCode(node.source, node.line ?? 1),
        )
      : null,
  ];
}

function state(node, ail, pipeline) {
  const flow = (names) =>
    h(
      "span",
      { class: "parts-of" },
      names.map((each) => h("a", { href: addressOf(each, pipeline) }, each)),
    );
  const told = typeof node.error === "string" ? node.error : node.error?.message;
  const rows = [
    [
      "state",
      [
        h("span", { class: `sign ${ail.severity}` }),
        " ",
        node.state,
        told ? h("span", { class: "is-dead" }, `: ${told}`) : "",
      ],
    ],
    ["reads", node.upstreams?.length ? flow(node.upstreams) : null],
    ["read by", node.downstreams?.length ? flow(node.downstreams) : null],
    [
      "clock",
      node.clock
        ? [
            moment(node.clock),
            node.waits_for
              ? [", no further than ", h("a", { href: addressOf(node.waits_for, pipeline) }, node.waits_for)]
              : "",
          ]
        : "none",
    ],
    ["topic", node.topic ? h("a", { href: link("topics", node.topic) }, node.topic) : null],
    ["deliveries", node.deliveries ? deliveries(node.deliveries) : null],
  ];
  return h(
    "dl",
    { class: "about" },
    rows.filter((row) => row[1] !== null).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function deliveries(figures) {
  if (typeof figures !== "object") return String(figures);
  return Object.entries(figures)
    .filter(([, value]) => value !== null && typeof value !== "object")
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? count(value) : value}`)
    .join(", ");
}

function addressOf(name, pipeline) {
  const known = store.pipeline?.nodes.find((each) => each.name === name);
  return known ? address(known, pipeline) : link("pipelines", pipeline, "nodes", name);
}

/** How late the rows of the sources come that a node depends on. */
async function latenessOf(node, signal) {
  const sources = ancestors(node).filter((each) => isInput(each) && each.topic && each.clock);
  return Promise.all(
    sources.map(async ({ name, topic }) => ({
      name,
      ...(await get(`${path("topics", topic)}/lateness`, { signal })),
    })),
  );
}

function ancestors(node) {
  const known = new Map((store.pipeline?.nodes ?? []).map((each) => [each.name, each]));
  const found = new Set([node.name]);
  for (const name of found) for (const each of known.get(name)?.upstreams ?? []) found.add(each);
  return [...found].map((name) => known.get(name)).filter(Boolean);
}

function latenessCard(late) {
  const told = (late ?? []).filter((each) => each.counts?.some(Boolean));
  return card(
    "How late its inputs come",
    { "data-key": "lateness" },
    told.length
      ? told.map((each) => h("div", { "data-key": each.name }, h("h3", {}, each.name), histogram(each)))
      : empty("Nothing is known of it: its inputs have no event time, or no row has come."),
  );
}
