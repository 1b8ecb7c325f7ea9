// Captures: how far each has followed its database, how late it is, how its snapshots go, and what the database keeps for
// it meanwhile.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { bytes, count, rate, seconds } from "../format.js";
import { poll } from "../live.js";
import { meter } from "../parts/operate.js";
import { card, empty, facts, head, moment, problem, table } from "../parts/pieces.js";

const SIGNS = { broken: "broken", waiting: "waiting", silent: "waiting", ended: "stopped", starting: "starting" };

export function capturesPage(main, _parameters, signal) {
  const top = () => head({ title: "Capture", lead: "Databases whose tables are followed, commit by commit." });
  show(main, top(), empty("Loading …"));
  const round = async () => {
    const { captures } = await get("captures", { signal });
    show(main, top(), captures.length ? captures.map(one) : card(null, {}, nothing()));
  };
  poll(round, 1, signal, (error) => error.status && show(main, top(), problem(error)));
}

function nothing() {
  return empty(
    "No database is captured. ",
    h("code", {}, 'pipeline.capture("crm", "postgresql://…")'),
    " and a table with ",
    h("code", {}, 'captured="crm.customers"'),
    " follow one.",
  );
}

function one(capture) {
  const aside = [h("span", { class: `sign ${SIGNS[capture.state] ?? ""}` }), " ", capture.state];
  return card(
    capture.capture,
    { "data-key": capture.capture, aside },
    capture.error ? problem({ message: capture.error }) : null,
    capture.alert ? h("p", { class: "is-late" }, capture.alert) : null,
    facts([
      ["from commit to log", seconds(capture.delay)],
      ["behind", seconds(capture.behind)],
      ["changes", count(capture.changes)],
      ["changes/s", rate(capture.rate)],
      ["kept by the database", capture.retained === null ? null : bytes(capture.retained)],
    ]),
    h(
      "dl",
      { class: "about" },
      fact("position", h("code", {}, capture.position ?? "none yet")),
      fact("newest commit", moment(capture.committed)),
      fact("noted", moment(capture.noted)),
    ),
    tables(capture),
  );
}

function fact(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function tables({ snapshots, expected, stopped }) {
  const names = [...new Set([...Object.keys(snapshots ?? {}), ...Object.keys(stopped ?? {})])];
  if (!names.length) return null;
  const columns = [
    { name: "table", cell: (name) => name },
    { name: "snapshot", cell: (name) => progress(snapshots?.[name], expected?.[name]) },
    { name: "rows of it", number: true, cell: (name) => count(snapshots?.[name]?.rows) },
    { name: "state", class: "wrap", cell: (name) => stopped?.[name] ?? "followed" },
  ];
  return table("Tables", columns, names, { key: (name) => name });
}

function progress(snapshot, expected) {
  if (!snapshot) return "none";
  return snapshot.done ? "done" : meter(expected ? Math.min(1, snapshot.rows / expected) : null);
}
