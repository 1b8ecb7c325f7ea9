// What ails a node, in one word and one severity: the same for the graph, the list and the page of a node, so that they
// never disagree.

import { count, percent } from "../format.js";

/** {severity: "running" | "late" | "dead" | "waiting" | "broken" | "stopped" | "starting", text} of a node. */
export function health(node, attention = []) {
  const said = attention.filter(
    (each) => each.node === node.name || (each.topic && each.topic === node.topic && isInput(node)),
  );
  const worst = ["broken", "dead", "waiting", "late"].find((severity) =>
    said.some((each) => each.severity === severity),
  );
  if (node.state === "broken" || worst === "broken") return { severity: "broken", text: "broken" };
  if (worst === "dead") return { severity: "dead", text: `${count(node.dead)} dead` };
  if (worst === "waiting" || node.state === "waiting") return { severity: "waiting", text: "waits" };
  if (worst === "late")
    return { severity: "late", text: node.rows ? `${percent(node.late / node.rows)} late` : "late" };
  if (node.state === "stopped" && !isInput(node)) return { severity: "stopped", text: "stopped" };
  if (node.state === "starting") return { severity: "starting", text: "starts" };
  return { severity: "running", text: "" };
}

/** Whether a node is written by others: a source or a table. */
export function isInput(node) {
  return node.kind === "source" || node.kind === "table";
}

/** Rows a second that a node gives to those after it. */
export function given(node) {
  return isInput(node) ? node.rate : (node.out_rate ?? node.given ?? null);
}
