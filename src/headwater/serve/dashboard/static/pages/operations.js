// What was asked of pipelines from here: verify, rebuild, reset, seek, redrive, with progress and result.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { seconds } from "../format.js";
import { poll } from "../live.js";
import { asProblem, meter, outcome } from "../parts/operate.js";
import { card, empty, head, moment, problem, table } from "../parts/pieces.js";
import { may, notAllowed } from "../permissions.js";

const COLUMNS = [
  { name: "operation", cell: (each) => [h("span", { class: "strong" }, each.kind), " ", each.target] },
  { name: "started", cell: (each) => moment(each.started) },
  { name: "took", number: true, cell: (each) => took(each) },
  {
    name: "state",
    cell: (each) => [
      h("span", { class: `sign ${{ failed: "broken", running: "starting" }[each.state] ?? ""}` }),
      " ",
      each.state,
    ],
  },
  {
    name: "result",
    class: "wrap",
    cell: (each) =>
      each.state === "running"
        ? [meter(each.progress), h("span", { class: "soft small" }, each.message ?? "")]
        : each.state === "failed"
          ? problem(asProblem(each))
          : outcome(each),
  },
];

export function operationsPage(main, _parameters, signal) {
  const top = () =>
    head({
      title: "Operations",
      lead: "Verify, rebuild and reset are on the page of a node, seek on that of a topic, redrive beside dead rows.",
    });
  show(main, top(), empty("Loading …"));
  poll(
    async () => {
      if (!may("operate")) {
        show(main, top(), notAllowed("see operations") ?? empty("Loading …"));
        return;
      }
      const { operations } = await get("operations", { signal });
      const newest = [...operations].sort((one, other) => (one.started < other.started ? 1 : -1));
      show(
        main,
        top(),
        card(
          null,
          {},
          newest.length
            ? table("Operations", COLUMNS, newest, { key: (each) => each.id })
            : empty("Nothing has been asked of this server since it started."),
        ),
      );
    },
    1,
    signal,
    (error) => error.status && show(main, top(), problem(error)),
  );
}

function took({ started, ended }) {
  return seconds(started ? (new Date(ended ?? Date.now()) - new Date(started)) / 1000 : null);
}
