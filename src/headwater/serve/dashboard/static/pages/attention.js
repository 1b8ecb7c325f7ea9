// What needs attention, in sentences, each with what to do; and that nothing does, which is news too.

import { h } from "../dom.js";
import { age, plural, seconds } from "../format.js";
import { isInput } from "../graph/health.js";
import { moment, withCode } from "../parts/pieces.js";
import { link } from "../router.js";

const ORDER = ["broken", "dead", "waiting", "late"];

/** The sentences of a pipeline. */
export function attention(pipeline) {
  const said = [...notRunning(pipeline), ...pipeline.attention].sort(
    (one, other) => ORDER.indexOf(one.severity) - ORDER.indexOf(other.severity),
  );
  if (!said.length) return calm(pipeline);
  return h(
    "ul",
    { class: "attention" },
    said.map((each) =>
      h(
        "li",
        {},
        h("span", { class: `sign ${each.severity}` }),
        h(
          "span",
          { class: "what" },
          h("span", { class: "visually-hidden" }, `${each.severity}: `),
          message(each, pipeline),
        ),
        h("span", { class: "since" }, each.since ? ["since ", moment(each.since)] : ""),
        each.hint ? h("span", { class: "todo" }, withCode(capital(each.hint))) : null,
      ),
    ),
  );
}

function notRunning(pipeline) {
  if (pipeline.running) return [];
  const never = pipeline.noted === null || pipeline.noted === undefined;
  return [
    {
      severity: "broken",
      message: `${pipeline.name} ${never ? "has not run yet" : "does not run"}`,
      since: pipeline.noted,
      hint: "start it with `headwater run FILE`; this page goes on by itself",
    },
  ];
}

function calm(pipeline) {
  const nodes = pipeline.nodes.filter((node) => !isInput(node));
  const behind = furthestBehind(nodes);
  const rest =
    behind === null ? "" : ` The clock that is furthest behind is ${behind.name}'s, by ${seconds(behind.seconds)}.`;
  return h(
    "p",
    { class: "calm" },
    h("span", { class: "sign" }),
    h("span", {}, `Nothing does: all ${plural(nodes.length, "node")} run.${rest}`),
  );
}

/** The message with the name of what it is about as a link, within it or before it. */
function message(each, pipeline) {
  const name = each.node ?? each.topic ?? each.capture;
  if (name === undefined) return capital(each.message);
  const to = each.node
    ? link("pipelines", pipeline.name, "nodes", name)
    : each.topic
      ? link("topics", name)
      : link("captures");
  const [before, ...after] = each.message.split(`"${name}"`);
  if (after.length) return [capital(before), h("a", { href: to }, name), after.join(`"${name}"`)];
  return [h("a", { href: to }, name), " ", each.message];
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The node whose clock is furthest behind the wall's. */
export function furthestBehind(nodes) {
  const ages = nodes
    .filter((node) => node.clock)
    .map((node) => ({ name: node.name, seconds: Math.max(0, age(node.clock)) }));
  return ages.length ? ages.reduce((most, each) => (each.seconds > most.seconds ? each : most)) : null;
}
