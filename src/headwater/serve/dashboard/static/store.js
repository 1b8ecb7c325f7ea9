// The pipeline that is looked at, asked for once a second for all who show it: the header, the graph, a node's page.

import { get, path, Problem } from "./api.js";
import { poll } from "./live.js";

const EVERY = 1;
const ALL = 10;

/** The pipelines that there are, which of them is looked at, and how it is. */
export const store = new (class extends EventTarget {
  pipelines = null;
  name = null;
  pipeline = null;
  /** Why the pipelines are not told, if they are not. */
  problem = null;
  #round = () => {};

  /** Begin to ask. */
  start(signal) {
    poll(
      async () => {
        this.pipelines = (await get("pipelines")).pipelines;
        this.problem = null;
        if (this.name === null && this.pipelines.length) this.choose(this.pipelines[0].name);
        this.tell();
      },
      ALL,
      signal,
      (error) => {
        this.problem = error instanceof Problem ? error : this.problem;
        this.tell();
      },
    );
    this.#round = poll(() => this.#ask(), EVERY, signal);
  }

  /** Look at another pipeline. */
  choose(name) {
    if (name === this.name) return;
    this.name = name;
    this.pipeline = null;
    this.#round();
  }

  /** Call a function now and after every change, until the signal. */
  follow(call, signal) {
    this.addEventListener("change", call, { signal });
    call();
  }

  async #ask() {
    const name = this.name;
    if (name === null) return;
    let answer;
    try {
      answer = await get(path("pipelines", name));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      answer = { name, problem: error, nodes: [], captures: [], attention: [] };
    }
    if (name !== this.name) return;
    this.pipeline = withRates(answer, this.pipeline);
    this.tell();
  }

  /** Let all who follow look again. */
  tell() {
    this.dispatchEvent(new Event("change"));
  }
})();

const SPAN = 20_000;
const ENOUGH = 8;

/** How many rows a second each node gives, by what it had given some seconds ago, where the server does not say. */
function withRates(answer, before) {
  const now = performance.now();
  for (const node of answer.nodes) {
    const last = before?.nodes.find((each) => each.name === node.name);
    node.samples = [...(last?.samples ?? []).filter((each) => each.at > now - SPAN), { at: now, out: node.out ?? 0 }];
    const [first] = node.samples;
    const span = (now - first.at) / 1000;
    const share = node.rows ? (node.out ?? 0) / node.rows : 0; // of the rows that it took in, until more is seen
    node.given = span > ENOUGH ? Math.max(0, (node.out ?? 0) - first.out) / span : node.rate * share;
  }
  return answer;
}
