// A row of a view, found by its key: one field for each column of the key.

import { get, path, Problem } from "../api.js";
import { h } from "../dom.js";
import { cell, isTime } from "../format.js";
import { empty, problem } from "./pieces.js";

/** A form for the key of a view, and the row below it. */
export function lookup({ name, key, columns }) {
  const types = Object.fromEntries(columns.map((column) => [column.name, column.type]));
  const found = h("div", { role: "status" });
  const inputs = key.map((column) =>
    h("input", {
      name: column,
      required: true,
      autocomplete: "off",
      placeholder: isTime(types[column]) ? "2026-01-31T18:00:00Z" : null,
    }),
  );
  const submit = async (event) => {
    event.preventDefault();
    try {
      const answer = await get(path("views", name, ...inputs.map((each) => each.value)));
      found.replaceChildren(shown(answer.row ?? answer, types));
    } catch (error) {
      const none = error instanceof Problem && error.status === 404;
      found.replaceChildren(none ? empty("No row has this key now.") : problem(error));
    }
  };
  return h(
    "form",
    { class: "stack", onsubmit: submit },
    h(
      "div",
      { class: "row" },
      inputs.map((input, at) => h("label", {}, h("span", {}, key[at]), input)),
      h("button", { type: "submit" }, "Find"),
    ),
    found,
  );
}

function shown(row, types) {
  return h(
    "table",
    {},
    h(
      "tbody",
      {},
      Object.entries(row).map(([name, value]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number wrap" }, cell(value, types[name]))),
      ),
    ),
  );
}
