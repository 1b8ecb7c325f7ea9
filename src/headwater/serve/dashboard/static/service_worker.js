// Shows the notifications that a pipeline sends to this browser, also while no page is open, and opens what they lead to.
// One is registered for each pipeline, below notifications/NAME/, since a browser has one subscription for each and a
// pipeline one key. It answers no request of any page, and asks nothing of any server.

const ROOT = new URL("./", self.location);

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(notify(event.data)));
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(visit(event.notification.data?.url ?? home()));
});

/** Show what a message says. One that comes again has the same id, and takes the place of the first in silence. */
async function notify(data) {
  const { title, body, url, id } = said(data);
  const tag = text(id);
  await self.registration.showNotification(text(title) || "Headwater", {
    body: text(body),
    data: { url: link(text(url)) },
    ...(tag ? { tag } : {}),
  });
}

/** The message, or nothing where it is none: a browser demands that something is shown all the same. */
function said(data) {
  try {
    return data.json() ?? {};
  } catch {
    return {};
  }
}

function text(value) {
  return typeof value === "string" ? value : "";
}

/** An address that a click may lead to: of the web, and without one the page of the pipeline. */
function link(url) {
  if (!url) return home();
  try {
    const found = new URL(url, ROOT);
    return ["http:", "https:"].includes(found.protocol) ? found.href : home();
  } catch {
    return home();
  }
}

function home() {
  const name = new URL(self.registration.scope).pathname.split("/").at(-2);
  return new URL(`#/pipelines/${name}`, ROOT).href;
}

/** Go to the window that shows it, or open one. */
async function visit(url) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find((each) => each.url === url);
  return there ? there.focus() : self.clients.openWindow(url);
}
