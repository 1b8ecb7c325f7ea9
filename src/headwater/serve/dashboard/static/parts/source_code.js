// A node's function as its file has it, with line numbers and just enough colour to find def and return.

import { h } from "../dom.js";

const WORDS =
  /("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*)|\b(def|return|if|else|elif|for|in|not|and|or|is|None|True|False|lambda|import|from|with|as|class|yield)\b/g;

/** Source text from a line of a file on. */
export function sourceCode(text, first = 1) {
  const code = h("code", {});
  let at = 0;
  let line = first;
  const put = (piece, kind) => {
    piece.split("\n").forEach((part, index) => {
      if (index) code.append("\n", number(++line));
      if (part) code.append(kind ? h("span", { class: kind }, part) : part);
    });
  };
  code.append(number(line));
  for (const found of text.trimEnd().matchAll(WORDS)) {
    put(text.slice(at, found.index), null);
    put(found[0], found[1] ? "text" : "keyword");
    at = found.index + found[0].length;
  }
  put(text.trimEnd().slice(at), null);
  return h("pre", { class: "source", tabindex: "0", role: "region", "aria-label": "Source" }, code);
}

function number(line) {
  return h("span", { class: "line", "aria-hidden": "true" }, String(line));
}
