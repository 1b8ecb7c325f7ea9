// Work that changes something: said first, confirmed, then followed to its end. It goes on in the server when the dialog
// is closed, and the page of operations has it.

import { get, path, Problem } from "../api.js";
import { h } from "../dom.js";
import { count, plural, seconds } from "../format.js";
import { dialog } from "./dialog.js";
import { problem } from "./pieces.js";

const EVERY = 500;

/** Ask, start, follow. `start(values)` promises the answer of the server; `fields` are inputs of the question. */
export function operate({ title, explain, label, danger = false, fields = [], start, done = () => {} }) {
  const refused = h("div", {});
  const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, label);
  const submit = async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const answer = await start(Object.fromEntries(new FormData(event.target)));
      if (answer?.operation) await followed(opened, title, answer.operation);
      else opened.show(...finished(title, { state: "done", result: answer }, opened));
      done();
    } catch (error) {
      go.disabled = false;
      refused.replaceChildren(problem(error));
    }
  };
  const opened = dialog(
    title,
    h(
      "form",
      { onsubmit: submit },
      h("h2", {}, title),
      explain.map((each) => h("p", {}, each)),
      fields,
      refused,
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => opened.close() }, "Cancel"), go),
    ),
  );
}

async function followed(opened, title, id) {
  for (;;) {
    const now = await asked(id);
    opened.show(...(now.state === "running" ? atWork(title, now, opened) : finished(title, now, opened)));
    if (now.state !== "running" || !opened.element.open) return;
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

/** How an operation is; a server that is away for a moment is asked again. */
async function asked(id) {
  try {
    return await get(path("operations", id));
  } catch (error) {
    if (error instanceof Problem) throw error;
    return { state: "running", progress: null, message: "the server does not answer; trying again" };
  }
}

function atWork(title, { progress, message, started }, opened) {
  const since = started ? (Date.now() - new Date(started)) / 1000 : null;
  return [
    h("h2", {}, title),
    meter(progress),
    h(
      "p",
      { class: "soft", role: "status" },
      [message || "at work", since === null ? "" : ` · ${seconds(Math.max(0, Math.round(since)))}`].join(""),
    ),
    h(
      "div",
      { class: "row end" },
      h("button", { type: "button", onclick: () => opened.close() }, "Close, it goes on"),
    ),
  ];
}

function finished(title, now, opened) {
  const failed = now.state === "failed";
  return [
    h("h2", {}, title),
    failed ? problem(asProblem(now)) : h("div", { role: "status" }, h("p", {}, outcome(now) || "Done.")),
    h(
      "div",
      { class: "row end" },
      h("button", { type: "button", class: "main", onclick: () => opened.close() }, "Close"),
    ),
  ];
}

/** A bar of how far work has got, or that it is not known how far. */
export function meter(progress) {
  const known = typeof progress === "number";
  return h("progress", { "aria-label": "progress", max: known ? "1" : null, value: known ? progress : null });
}

/** The error of an operation, as the API writes it: text or a problem document. */
export function asProblem({ error, message }) {
  if (error && typeof error === "object")
    return { message: error.title ?? error.message ?? "it failed", detail: error.detail, hint: error.hint };
  return { message: error || message || "it failed" };
}

/** What came of an operation, in words. */
export function outcome({ result, message }) {
  if (result === null || result === undefined) return message ? sentenceOf(message) : "";
  if (typeof result !== "object") return sentenceOf(String(result));
  if (typeof result.equal === "number") return verdict(result);
  const parts = Object.entries(result).filter(([, value]) => value !== null && typeof value !== "object");
  return parts
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "number" ? count(value) : value}`)
    .join(", ");
}

/** What a verification has found. */
function verdict({ ok, equal, missing, extra, different, unproved }) {
  if (unproved) return sentenceOf(unproved);
  const rows = `${plural(equal, "row")} as the log gives ${equal === 1 ? "it" : "them"}`;
  if (ok) return `Proved: ${rows}.`;
  return `Not as it should be: ${rows}, ${count(missing)} missing, ${count(extra)} too many, ${count(different)} different.`;
}

function sentenceOf(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
