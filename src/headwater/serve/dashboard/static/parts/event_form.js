// A form that sends an event, made from the topic's schema: one field a column, checked by the server, which knows best.

import { path, post } from "../api.js";
import { h } from "../dom.js";
import { isNumber, isTime } from "../format.js";
import { problem } from "./pieces.js";

/** A form for rows of a topic; `sent` is called with what the server answered. */
export function eventForm(topic, schema, sent = () => {}) {
  const says = h("div", { class: "says", role: "status" });
  const button = h("button", { class: "main", type: "submit" }, "Send event");
  const inputs = schema.map((column) => field(column));
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const answer = await post(path("topics", topic), row(schema, inputs), {
        headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) },
      });
      says.replaceChildren(h("p", { class: "soft" }, where(answer)));
      sent(answer);
    } catch (error) {
      says.replaceChildren(problem(error));
    } finally {
      button.disabled = false;
    }
  };
  return h(
    "form",
    { onsubmit: submit, class: "stack" },
    h(
      "div",
      { class: "fields" },
      inputs.map((each) => each.label),
    ),
    says,
    h("div", { class: "row" }, button),
  );
}

function field({ name, type }) {
  const kind = isTime(type) ? { placeholder: "now" } : isNumber(type) ? { inputmode: "decimal" } : {};
  const input = /^boolean|^bool/i.test(type)
    ? h(
        "select",
        { name },
        ["", "true", "false"].map((each) => h("option", { value: each }, each || "null")),
      )
    : h("input", { name, autocomplete: "off", ...kind });
  return { input, label: h("label", {}, h("span", {}, `${name} · ${type.toLowerCase()}`), input) };
}

/** The row that the fields say: empty is null, a time that is empty is now, structures are JSON. */
function row(schema, inputs) {
  return Object.fromEntries(schema.map(({ name, type }, at) => [name, value(inputs[at].input.value, type)]));
}

function value(text, type) {
  if (isTime(type)) return text.trim() === "" || text.trim() === "now" ? new Date().toISOString() : text.trim();
  if (text === "") return null;
  if (/^bool/i.test(type)) return text === "true";
  if (/^(decimal|dec|numeric)/i.test(type)) return text.trim();
  if (isNumber(type))
    return Number.isSafeInteger(Number(text)) || !/^-?\d+$/.test(text.trim()) ? Number(text) : text.trim();
  return /^(struct|array|map)|^list/i.test(type) ? parsed(text) : text;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function where(answer) {
  const [first] = answer?.positions ?? [answer ?? {}];
  const partition = first?.partition ?? null;
  return partition === null ? "Sent." : `Sent: partition ${partition}, offset ${first.offset}.`;
}
