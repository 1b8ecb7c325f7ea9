// Questions to a person: native dialogs, so that focus, Escape and what lies behind are the browser's business.

import { h, show } from "../dom.js";
import { problem } from "./pieces.js";

/** Open a dialog with a body; it is removed when it is closed. Returns {close, show}. */
export function dialog(label, ...children) {
  const body = h("div", { class: "body" });
  const element = h("dialog", { "aria-label": label }, body);
  document.body.append(element);
  show(body, ...children);
  const before = document.activeElement;
  element.addEventListener("close", () => {
    element.remove();
    before?.focus?.();
  });
  element.showModal();
  return { element, show: (...wanted) => show(body, ...wanted), close: () => element.close() };
}

/** Ask for a token until one is given; the promise is that token. */
export function askToken(said, refused) {
  return new Promise((resolve) => {
    const input = h("input", {
      type: "password",
      name: "token",
      autocomplete: "off",
      required: true,
      pattern: "[!-~]+", // as a header may have it
      title: "letters, digits and signs, without spaces",
      "aria-label": "Token",
    });
    const submit = (event) => {
      event.preventDefault();
      opened.close();
      resolve(input.value);
    };
    const opened = dialog(
      "Token",
      h(
        "form",
        { onsubmit: submit },
        h("h2", {}, "This server asks for a token"),
        refused ? problem(said) : null,
        h(
          "p",
          { class: "soft" },
          "Somebody who runs it makes one with ",
          h("code", {}, "headwater token"),
          ". It is kept until this tab is closed.",
        ),
        h("label", {}, h("span", {}, "Token"), input),
        h("div", { class: "row end" }, h("button", { class: "main", type: "submit" }, "Continue")),
      ),
    );
    opened.element.addEventListener("cancel", (event) => event.preventDefault());
    input.focus();
  });
}
