// The beginning: header, routes, and what is said when the server is away. A page is a function of its place, its
// parameters and a signal that ends everything it started.

import { connection, onTokenNeeded } from "./api.js";
import { h, show } from "./dom.js";
import { count, rate, seconds, time } from "./format.js";
import { given, isInput } from "./graph/health.js";
import { furthestBehind } from "./pages/attention.js";
import { capturesPage } from "./pages/captures.js";
import { nodePage } from "./pages/node.js";
import { operationsPage } from "./pages/operations.js";
import { pipelinePage } from "./pages/pipeline.js";
import { topicPage } from "./pages/topic.js";
import { topicsPage } from "./pages/topics.js";
import { viewPage } from "./pages/view.js";
import { viewsPage } from "./pages/views.js";
import { askToken } from "./parts/dialog.js";
import { empty, head, problem } from "./parts/pieces.js";
import { startPermissions } from "./permissions.js";
import { link, match, parse } from "./router.js";
import { store } from "./store.js";

const ROUTES = [
  { pattern: [], page: pipelinePage },
  { pattern: ["pipelines", ":pipeline"], page: pipelinePage },
  { pattern: ["pipelines", ":pipeline", "nodes", ":node"], page: nodePage },
  { pattern: ["topics"], page: topicsPage },
  { pattern: ["topics", ":topic"], page: topicPage },
  { pattern: ["views"], page: viewsPage },
  { pattern: ["views", ":view"], page: viewPage },
  { pattern: ["captures"], page: capturesPage },
  { pattern: ["operations"], page: operationsPage },
];
const TABS = [
  ["topics", "Topics"],
  ["views", "Views"],
  ["captures", "Capture"],
  ["operations", "Operations"],
];

const main = document.getElementById("main");
let leaving = new AbortController();
let first = true;

function route() {
  leaving.abort();
  leaving = new AbortController();
  const { parts, query } = parse(location.hash);
  const found = match(ROUTES, parts);
  if (found?.parameters.pipeline) store.choose(found.parameters.pipeline);
  document.title = [...parts.slice(-1), "Headwater"].join(" · ");
  main.replaceChildren(empty("Loading …"));
  window.scrollTo(0, 0);
  if (found)
    Promise.resolve(found.page(main, { ...found.parameters, query }, leaving.signal)).catch(failed(leaving.signal));
  else
    show(
      main,
      head({ title: "No such page" }),
      empty("Nothing is at ", h("code", {}, location.hash), ". ", h("a", { href: "#/" }, "To the pipeline"), "."),
    );
  if (!first) focusHeading(leaving.signal);
  first = false;
  header();
}

/** Bring those who do not see the page to its beginning, as soon as it has one. */
function focusHeading(signal) {
  const focus = () => {
    const heading = main.querySelector("h1");
    if (!heading) return;
    arrival.disconnect();
    heading.focus({ preventScroll: true });
  };
  const arrival = new MutationObserver(focus);
  arrival.observe(main, { childList: true, subtree: true });
  signal.addEventListener("abort", () => arrival.disconnect());
  focus();
}

function failed(signal) {
  return (error) => {
    if (!signal.aborted) main.replaceChildren(head({ title: "This page could not be shown" }), problem(error));
  };
}

function header() {
  const { parts } = parse(location.hash);
  const here = (tab) => ((parts[0] ?? "pipelines") === tab ? "page" : null);
  const several = (store.pipelines?.length ?? 0) > 1;
  const home = store.name === null ? "#/" : link("pipelines", store.name);
  show(
    document.getElementById("nav"),
    h("a", { href: home, "aria-current": here("pipelines") }, store.name ?? "Pipeline"),
    several
      ? h(
          "select",
          {
            "aria-label": "Pipeline",
            onchange: (event) => {
              location.hash = link("pipelines", event.target.value);
            },
          },
          store.pipelines.map(({ name }) => h("option", { value: name, selected: name === store.name }, name)),
        )
      : null,
    TABS.map(([tab, text]) => h("a", { href: link(tab), "aria-current": here(tab) }, text)),
  );
  show(document.getElementById("totals"), totals(store.pipeline));
}

function totals(pipeline) {
  if (!pipeline || pipeline.problem) return null;
  const computed = pipeline.nodes.filter((node) => !isInput(node));
  const running = computed.filter((node) => node.state === "running" || node.state === "waiting").length;
  const flow = pipeline.nodes.filter(isInput).reduce((sum, node) => sum + (given(node) ?? 0), 0);
  const behind = furthestBehind(computed);
  if (!pipeline.running)
    return h(
      "span",
      {},
      h("span", { class: "sign stopped" }),
      " ",
      h("b", {}, "not running"),
      pipeline.noted ? ` since ${time(pipeline.noted)}` : "",
    );
  return [
    h(
      "span",
      {},
      h("span", { class: `sign ${running < computed.length ? "waiting" : ""}` }),
      " ",
      h("b", {}, `${count(running)}${running < computed.length ? `/${count(computed.length)}` : ""}`),
      " nodes run",
    ),
    h("span", { class: "extra" }, h("b", {}, rate(flow)), " rows/s in"),
    behind === null ? null : h("span", { class: "more" }, "furthest behind ", h("b", {}, seconds(behind.seconds))),
  ];
}

function watchConnection() {
  const place = document.getElementById("connection");
  connection.addEventListener("lost", () => {
    show(
      place,
      h("b", {}, "The server does not answer."),
      ` What you see is from ${time(new Date().toISOString())}. It is asked again every few seconds, and this page goes on by itself.`,
    );
    place.hidden = false;
  });
  connection.addEventListener("back", () => {
    place.hidden = true;
  });
}

onTokenNeeded(askToken);
watchConnection();
document.querySelector(".skip").onclick = (event) => {
  event.preventDefault(); // the address is the route
  main.focus();
};
startPermissions(() => store.tell(), new AbortController().signal);
store.start(new AbortController().signal);
store.follow(header, new AbortController().signal);
window.addEventListener("hashchange", route);
route();
