// All views: what they are for, how many rows they have, up to when they are right.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { age, count, plural, seconds } from "../format.js";
import { poll } from "../live.js";
import { card, empty, head, problem, table } from "../parts/pieces.js";
import { link } from "../router.js";
import { store } from "../store.js";

export function viewsPage(main, _parameters, signal) {
  show(main, head({ title: "Views" }), empty("Loading …"));
  poll(
    async () => {
      const { views } = await get("views", { signal });
      show(
        main,
        head({
          title: "Views",
          lead: `${plural(views.length, "view")} that any process can read, at /v1/views/NAME.`,
        }),
        views.length
          ? card(null, {}, table("Views", columns(), views, { key: (view) => `${view.pipeline} ${view.name}` }))
          : card(null, {}, empty("No view has been made yet: a pipeline makes its views in its first batch.")),
      );
    },
    2,
    signal,
    (error) => error.status && show(main, head({ title: "Views" }), problem(error)),
  );
}

function columns() {
  const doc = (view) =>
    store.pipeline?.nodes
      .find((node) => node.name === view.name && store.name === view.pipeline)
      ?.doc?.split("\n")[0] ?? "";
  return [
    { name: "view", cell: (view) => h("a", { href: link("views", view.name) }, view.name) },
    { name: "rows", number: true, cell: (view) => count(view.rows) },
    {
      name: "right up to",
      number: true,
      cell: (view) => (view.clock ? `${seconds(Math.max(0, age(view.clock)))} ago` : "–"),
    },
    { name: "version", number: true, cell: (view) => count(view.version) },
    { name: "key", cell: (view) => view.key.join(", ") },
    { name: "what it is", class: "wrap soft wide-only", cell: doc },
  ];
}
