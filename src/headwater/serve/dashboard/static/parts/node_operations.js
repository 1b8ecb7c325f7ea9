// What can be asked of a node, and what each means for those who read its results meanwhile.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { may, notAllowed } from "../permissions.js";
import { operate } from "./operate.js";

const ASK = {
  verify: {
    label: "Verify",
    explain: [
      "Everything is computed again from the log, beside the running pipeline, and compared row by row. Nothing is changed; it takes as long as reading the log does.",
    ],
  },
  rebuild: {
    label: "Rebuild",
    danger: true,
    explain: [
      "A new version is computed from the whole log beside the old one, which is served until the new one has caught up; then they are exchanged.",
    ],
  },
  reset: {
    label: "Reset",
    danger: true,
    explain: [
      "The view begins anew, empty, at a position of its inputs: what lies before is left out. A pipeline that runs goes on with it at once; readers see an incomplete result until it has caught up.",
    ],
  },
  redrive: {
    label: "Redrive",
    explain: [
      "The dead rows are given to the node once more, in their order. Do it after the code or the data that failed is mended; rows that fail again come back here.",
    ],
  },
};

/** The buttons of what can be asked of a node. */
export function actions(node, pipeline) {
  const kinds = node.operations ?? [];
  if (!kinds.length) return [];
  if (!may("operate")) return [notAllowed("operate")];
  return kinds.map((kind) => h("button", { onclick: () => ask(kind, node, pipeline) }, `${ASK[kind].label}…`));
}

/** Ask for one of them. */
export function ask(kind, node, pipeline) {
  operate({
    fields: kind === "reset" ? [position()] : [],
    ...ASK[kind],
    title: `${ASK[kind].label} ${node.name}?`,
    start: (values) => post(`${path("pipelines", pipeline, "nodes", node.name)}/${kind}`, values),
  });
}

/** A field for a position of a topic. */
export function position() {
  const input = h("input", { name: "to", required: true, value: "earliest", autocomplete: "off" });
  return h(
    "label",
    {},
    h("span", {}, "to: earliest, latest, an offset, or a time such as 2026-01-31T18:00:00Z"),
    input,
  );
}
