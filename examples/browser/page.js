// A table that follows a view, and a form that sends to a topic; both work on while the server is away.
import { pending, send, view } from "/client/headwater.js";

const totals = view("totals");
const [state, head, body, form, sent] = ["state", "head", "rows", "form", "sent"].map((id) =>
  document.getElementById(id),
);

function cells(values, kind) {
  const row = document.createElement("tr");
  row.append(...values.map((value) => Object.assign(document.createElement(kind), { textContent: value })));
  return row;
}

function draw() {
  const columns = Object.keys(totals.rows[0] ?? {});
  head.replaceChildren(cells(columns, "th"));
  body.replaceChildren(...totals.rows.map((row) => cells(columns.map((name) => row[name] ?? ""), "td")));
}

totals.addEventListener("change", draw);
totals.addEventListener("state", () => (state.textContent = totals.live ? "live" : "offline: as it was last seen"));
totals.addEventListener("failed", ({ detail }) => (state.textContent = detail.message));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const city = new FormData(form).get("city");
  const delivered = send("orders", { id: Date.now(), city });
  sent.textContent = `${await pending()} waiting`;
  sent.textContent = await delivered.then(() => "delivered", (error) => error.message);
});
