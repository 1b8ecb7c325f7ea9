// Small things that every page has: a card with its heading, a point in time, a problem in words, a list of facts.

import { forgetToken, hasToken } from "../api.js";
import { h } from "../dom.js";
import { instant, time } from "../format.js";

/** A card with a heading, and beside it what is said in passing. */
export function card(title, properties, ...children) {
  const { aside = null, level = "h2", ...rest } = properties ?? {};
  return h(
    "section",
    { ...rest, class: `card ${rest.class ?? ""}`.trim() },
    title === null
      ? null
      : h(
          "div",
          { class: "title" },
          h(level, {}, title),
          aside === null ? null : h("span", { class: "aside" }, aside),
        ),
    ...children,
  );
}

/** The head of a page: where one is, the name, what kind it is, what can be done, and a sentence. */
export function head({ crumb = [], title, kind = null, lead = null, actions = [] }) {
  return h(
    "div",
    { class: "head" },
    crumb.length
      ? h(
          "p",
          { class: "crumb" },
          crumb.map(([text, href], at) => [at ? " / " : "", h("a", { href }, text)]),
        )
      : null,
    h(
      "div",
      { class: "line" },
      h("h1", { tabindex: "-1" }, title),
      kind === null ? null : h("span", { class: "kind" }, kind),
      actions.length ? h("div", { class: "actions" }, actions) : null,
    ),
    lead ? h("p", { class: "lead" }, lead) : null,
  );
}

/** A point in time as people here write it, with the exact one behind it. */
export function moment(value) {
  const at = instant(value);
  return at === null
    ? h("span", { class: "soft" }, "–")
    : h("time", { datetime: at.toISOString(), title: at.toISOString() }, time(value));
}

/** What went wrong, and what to do about it. */
export function problem(error) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, sentence(error.message)),
    error.detail ? h("p", { class: "soft" }, sentence(error.detail)) : null,
    error.hint ? h("p", { class: "hint" }, withCode(sentence(error.hint))) : null,
    error.status === 403 && hasToken() ? h("button", { onclick: forgetToken }, "Use another token") : null,
  );
}

/** What stands between backticks is what to type. */
export function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Figures with their names. */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs
      .filter((pair) => pair[1] !== null)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Words where there is nothing to show. */
export function empty(...words) {
  return h("p", { class: "empty" }, words);
}

/** An area that can be scrolled sideways, also by keyboard. */
export function scrolling(label, ...children) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, children);
}

/** A table: columns are {name, number, cell(row)}, rows have a key. */
export function table(label, columns, rows, { key = null, mark = () => null } = {}) {
  return scrolling(
    label,
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column) => h("th", { scope: "col", class: classes(column) }, column.name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            { "data-key": key === null ? null : key(row), class: mark(row) },
            columns.map((column) => h("td", { class: classes(column) }, column.cell(row))),
          ),
        ),
      ),
    ),
  );
}

function classes(column) {
  return [column.number ? "number" : "", column.class ?? ""].join(" ").trim() || null;
}
