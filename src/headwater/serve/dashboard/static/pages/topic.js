// A topic: its records as they come, or those that are searched for; its partitions, who writes, who reads and how far; and
// a form that sends an event.

import { get, path, post } from "../api.js";
import { h, keep, show } from "../dom.js";
import { age, bytes, count, rate, seconds } from "../format.js";
import { poll } from "../live.js";
import { eventForm } from "../parts/event_form.js";
import { histogram } from "../parts/histogram.js";
import { position } from "../parts/node_operations.js";
import { operate } from "../parts/operate.js";
import { card, empty, facts, head, moment, problem, table } from "../parts/pieces.js";
import { RecordFeed } from "../parts/record_feed.js";
import { may, notAllowed } from "../permissions.js";
import { link } from "../router.js";

export async function topicPage(main, { topic: name }, signal) {
  let topic = await get(path("topics", name), { signal });
  let late = null;
  const feed = new RecordFeed(topic, signal);
  const form = eventForm(name, topic.schema ?? []);
  const draw = () => show(main, ...sections(topic, { feed, form, late }));
  feed.changed = draw;
  poll(
    async () => {
      topic = await get(path("topics", name), { signal });
      draw();
    },
    1,
    signal,
    (error) => error.status && show(main, head({ title: name }), problem(error)),
  );
  poll(
    async () => {
      late = topic.event_time ? await get(`${path("topics", name)}/lateness`, { signal }) : null;
    },
    5,
    signal,
  );
}

function sections(topic, { feed, form, late }) {
  return [
    head({
      crumb: [["Topics", link("topics")]],
      title: topic.name,
      kind: topic.compacted ? "table" : "topic",
      lead: declared(topic),
    }),
    facts([
      ["records", count(topic.records)],
      ["rows/s", rate(topic.rate)],
      ["size", bytes(topic.size)],
      ["partitions", count(topic.partitions.length)],
    ]),
    feed.card(),
    h("div", { class: "half", "data-key": "who" }, producers(topic), groups(topic)),
    h("div", { class: "half", "data-key": "where" }, partitions(topic), lateness(late)),
    card(
      "Send an event",
      { "data-key": "send", aside: "checked against the schema, durable when the answer comes" },
      sending(topic, form),
    ),
  ];
}

function sending(topic, form) {
  if (!topic.schema?.length) return empty("The topic has no schema, so there is no form for it.");
  return may("send", topic.name) ? keep(form) : notAllowed(`send to ${topic.name}`);
}

function declared({ key, event_time, pipeline_of }) {
  const keys = Array.isArray(key) ? key.join(", ") : key;
  return [
    keys ? `key ${keys}` : "no key",
    event_time ? `event time ${event_time}` : "no event time",
    pipeline_of?.length ? `of ${[pipeline_of].flat().join(", ")}` : null,
  ]
    .filter(Boolean)
    .join(", ");
}

function partitions({ partitions: rows }) {
  return card(
    "Partitions",
    {},
    table(
      "Partitions",
      [
        { name: "partition", cell: (row) => row.partition },
        { name: "earliest", number: true, cell: (row) => row.earliest },
        { name: "end", number: true, cell: (row) => row.end },
        { name: "size", number: true, cell: (row) => bytes(row.size) },
        { name: "newest", cell: (row) => moment(row.newest) },
      ],
      rows,
      { key: (row) => `p${row.partition}` },
    ),
  );
}

function producers({ producers: rows }) {
  if (!rows?.length) return card("Producers", {}, empty("Nobody has written here yet, or nobody says who they are."));
  return card(
    "Producers and their clocks",
    {},
    table(
      "Producers",
      [
        { name: "producer", cell: (row) => row.producer || h("span", { class: "soft" }, "unnamed") },
        { name: "partition", cell: (row) => row.partition },
        { name: "clock", cell: (row) => moment(row.clock) },
        { name: "behind", number: true, cell: (row) => (row.clock ? seconds(Math.max(0, age(row.clock))) : "–") },
        {
          name: "last record",
          number: true,
          cell: (row) => (row.last ? `${seconds(Math.max(0, age(row.last)))} ago` : "–"),
        },
      ],
      rows,
      { key: (row) => `${row.producer} ${row.partition}` },
    ),
  );
}

function groups(topic) {
  if (!topic.groups?.length)
    return card(
      "Groups",
      {},
      empty(
        "No group reads this topic. Pipelines keep their positions themselves; ",
        h("code", {}, `headwater consume ${topic.name} --group NAME`),
        " makes one.",
      ),
    );
  return card(
    "Groups",
    {},
    table(
      "Groups",
      [
        { name: "group", cell: (row) => row.group },
        { name: "partition", cell: (row) => row.partition },
        { name: "committed", number: true, cell: (row) => row.committed ?? "–" },
        { name: "lag", number: true, cell: (row) => count(row.records) },
        { name: "behind", number: true, cell: (row) => seconds(row.behind ?? null) },
        ...(may("operate") ? [seeking(topic.name)] : []),
      ],
      topic.groups,
      { key: (row) => `${row.group} ${row.partition}` },
    ),
  );
}

function seeking(topic) {
  return {
    name: h("span", { class: "visually-hidden" }, "operations"),
    cell: ({ group }) =>
      h("button", { onclick: () => seek(topic, group), "aria-label": `Seek group ${group}` }, "Seek…"),
  };
}

function seek(topic, group) {
  operate({
    title: `Seek group ${group}?`,
    label: "Seek",
    danger: true,
    fields: [position()],
    explain: [
      `The group goes on reading ${topic} from there: what lies before is skipped, what it has read since is read again.`,
    ],
    start: (values) => post(`${path("topics", topic, "groups", group)}/seek`, values),
  });
}

function lateness(late) {
  const shape = late?.lateness ?? late;
  return card(
    "How late records come",
    { "data-key": "lateness" },
    shape?.counts?.some(Boolean)
      ? histogram(shape)
      : empty("Nothing is known of it: the topic has no event time, or no record has come lately."),
  );
}
