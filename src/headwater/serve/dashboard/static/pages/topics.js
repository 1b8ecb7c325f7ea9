// All topics: how much is in them, and how much comes.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { bytes, count, plural, rate } from "../format.js";
import { poll } from "../live.js";
import { card, empty, head, problem, table } from "../parts/pieces.js";
import { link } from "../router.js";

const COLUMNS = [
  { name: "topic", cell: (topic) => h("a", { href: link("topics", topic.name) }, topic.name) },
  { name: "records", number: true, cell: (topic) => count(topic.records) },
  { name: "rows/s", number: true, cell: (topic) => rate(topic.rate) },
  { name: "size", number: true, cell: (topic) => bytes(topic.size) },
  { name: "partitions", number: true, cell: (topic) => count(topic.partitions) },
  { name: "key", cell: (topic) => list(topic.key) },
  { name: "event time", cell: (topic) => topic.event_time ?? h("span", { class: "soft" }, "–") },
  { name: "kept", cell: (topic) => (topic.compacted ? "newest of each key" : "all") },
];

export function topicsPage(main, _parameters, signal) {
  show(main, head({ title: "Topics" }), empty("Loading …"));
  poll(
    async () => {
      const { topics } = await get("topics", { signal });
      const sum = topics.reduce((total, topic) => total + (topic.records ?? 0), 0);
      show(
        main,
        head({ title: "Topics", lead: `${plural(topics.length, "topic")} with ${plural(sum, "record")}.` }),
        topics.length ? card(null, {}, table("Topics", COLUMNS, topics, { key: (topic) => topic.name })) : nothing(),
      );
    },
    2,
    signal,
    (error) => error.status && show(main, head({ title: "Topics" }), problem(error)),
  );
}

function nothing() {
  return card(
    null,
    {},
    empty(
      "The log is empty. ",
      h("code", {}, "headwater topic create NAME 'id BIGINT, at TIMESTAMP'"),
      " makes a topic; a pipeline makes those of its sources when it starts.",
    ),
  );
}

function list(key) {
  const names = Array.isArray(key) ? key : key ? [key] : [];
  return names.length ? names.join(", ") : h("span", { class: "soft" }, "–");
}
