// What the token of this tab allows, so that nothing is offered which would be refused. The server decides all the same:
// this is about what is shown.

import { connection, forgetToken, get } from "./api.js";
import { h } from "./dom.js";
import { poll } from "./live.js";

const EVERY = 60;
let known = null;

/** Ask what is allowed, and again when another token was given; `changed` is called when it is known. */
export function startPermissions(changed, signal) {
  const round = poll(
    async () => {
      known = await get("permissions", { signal });
      changed();
    },
    EVERY,
    signal,
  );
  connection.addEventListener("token", round, { signal });
}

/** Whether one may operate, or send to a topic; nothing is allowed before it is known. */
export function may(scope, subject = null) {
  const sufficient = scope === "operate" ? ["operate"] : [`${scope}:*`, `${scope}:${subject}`];
  return sufficient.some((each) => known?.scopes.includes(each));
}

/** Words where something is not allowed, with a way out; nothing before that is known. */
export function notAllowed(what) {
  if (known === null) return null;
  return h(
    "p",
    { class: "not-allowed" },
    h("span", {}, `The token ${known.token ?? ""} does not allow to ${what}.`),
    h("button", { onclick: forgetToken }, "Use another token"),
  );
}
