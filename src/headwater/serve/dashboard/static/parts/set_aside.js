// Rows that a node did not use: those on which its code failed, and those that came too late. None is lost: they are shown,
// and the dead ones can be given to it again.

import { get } from "../api.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { may } from "../permissions.js";
import { ask } from "./node_operations.js";
import { card, empty, moment, table } from "./pieces.js";

const SHOWN = 10;

/** The late and dead rows of a node, as far as it has any. */
export async function setAside(where, node, signal) {
  const of = async (kind) => (node[kind] ? get(`${where}/${kind}`, { signal }) : null);
  return { late: await of("late"), dead: await of("dead") };
}

/** The rows in a card each, or that there are none. */
export function setAsideCards(node, kept, pipeline) {
  if (!node.late && !node.dead) {
    const words =
      "None. A row on which the node's code fails, or that comes after its window was closed, is kept and shown here.";
    return card("Dead and late rows", { "data-key": "aside" }, empty(words));
  }
  return h(
    "div",
    { class: "stack", "data-key": "aside" },
    node.dead ? dead(node, kept.dead, pipeline) : null,
    node.late ? late(node, kept.late) : null,
  );
}

function dead(node, kept, pipeline) {
  const redrive = () => h("button", { onclick: () => ask("redrive", node, pipeline) }, "Redrive…");
  const aside = may("operate") ? redrive() : null;
  const rows = kept?.records ?? [];
  return card(
    "Dead rows",
    { aside },
    rows.length ? records("Dead rows", rows) : empty(`${count(node.dead)} in all; none is waiting to be redriven.`),
  );
}

function late(node, kept) {
  const rows = kept?.records ?? [];
  return card(
    "Late rows",
    { aside: `${count(node.late)} in all` },
    rows.length ? records("Late rows", rows) : empty("They corrected what they were late for, or are not kept."),
  );
}

function records(label, rows) {
  const columns = [
    { name: "set aside", cell: (row) => moment(row.received ?? row.at ?? row.time) },
    { name: "row", class: "wrap", cell: (row) => h("code", {}, JSON.stringify(row.value ?? row.record ?? row)) },
  ];
  if (rows.some((row) => row.error)) columns.push({ name: "error", class: "wrap", cell: (row) => row.error ?? "" });
  return table(label, columns, rows.slice(0, SHOWN), { key: (row) => `${row.partition}-${row.offset}` });
}
