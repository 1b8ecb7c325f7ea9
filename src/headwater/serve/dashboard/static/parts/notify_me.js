// Notifications of a pipeline in this browser: whether they can be had, whether they are wanted, and the way to either.
// The browser's subscription is what counts: the server is told of it again whenever this is shown, in case it forgot.

import { get, path, post } from "../api.js";
import { h, show } from "../dom.js";
import { card, problem } from "./pieces.js";

const WORDS = {
  asking: "Looking …",
  insecure: "This browser shows notifications only for pages that come by HTTPS, or from its own machine.",
  unsupported: "This browser has no notifications for pages.",
  denied:
    "This browser was told to show no notifications of this page. Allow them in its settings for this site, then load the page again.",
  off: "When this sink sends something, the browser can show it, also while this page is closed.",
  on: "On: this browser shows what the pipeline sends, also while this page is closed.",
};

/** A card that turns the notifications of a pipeline on and off. */
export class NotifyMe {
  #body = h("div", { class: "notify", role: "status" });
  #pipeline;

  constructor(pipeline) {
    this.#pipeline = pipeline;
    this.element = card("Notifications in this browser", {}, this.#body);
    this.#draw("asking");
    this.#run(() => this.#find());
  }

  /** Find out how it is. */
  async #find() {
    const lacking = unavailable();
    if (lacking) return lacking;
    const subscription = await (await this.#registration())?.pushManager.getSubscription();
    if (!subscription || Notification.permission !== "granted") return "off";
    const { key } = await get(this.#path());
    if (!sameKey(subscription, key)) return "off"; // the home of the pipeline was made anew
    await post(`${this.#path()}/subscribe`, subscription.toJSON());
    return "on";
  }

  async #turnOn() {
    const permission = await Notification.requestPermission();
    if (permission !== "granted") return permission === "denied" ? "denied" : "off";
    const { key } = await get(this.#path());
    const registration = await navigator.serviceWorker.register("service_worker.js", { scope: this.#scope() });
    await active(registration);
    const old = await registration.pushManager.getSubscription();
    if (old && !sameKey(old, key)) await old.unsubscribe();
    const subscription = await subscribed(registration, key);
    try {
      await post(`${this.#path()}/subscribe`, subscription.toJSON());
    } catch (error) {
      await subscription.unsubscribe(); // nobody would send to it
      throw error;
    }
    return "on";
  }

  async #turnOff() {
    const subscription = await (await this.#registration())?.pushManager.getSubscription();
    if (subscription) {
      await post(`${this.#path()}/unsubscribe`, { endpoint: subscription.endpoint });
      await subscription.unsubscribe();
    }
    return "off";
  }

  /** Do something, and show how it is then; what failed is said, and leaves the button. */
  async #run(work, before = "off") {
    try {
      this.#draw(await work());
    } catch (error) {
      this.#draw(before, error);
    }
  }

  #draw(state, error = null) {
    const press = (work, label, main) =>
      h(
        "button",
        {
          type: "button",
          class: main ? "main" : null,
          onclick: (event) => {
            event.target.disabled = true;
            this.#run(work, state);
          },
        },
        label,
      );
    const on = () => press(() => this.#turnOn(), "Notify me in this browser", true);
    const off = () => press(() => this.#turnOff(), "Stop notifying me", false);
    const actions = { off: on, on: off }[state];
    this.#body.dataset.state = state;
    show(
      this.#body,
      h("p", { class: state === "on" ? null : "soft" }, WORDS[state]),
      error ? problem(error) : null,
      actions ? h("div", { class: "row" }, actions()) : null,
    );
  }

  #path() {
    return path("pipelines", this.#pipeline, "push");
  }

  #scope() {
    return new URL(`notifications/${encodeURIComponent(this.#pipeline)}/`, document.baseURI).href;
  }

  async #registration() {
    const found = await navigator.serviceWorker.getRegistration(this.#scope());
    return found?.scope === this.#scope() ? found : null;
  }
}

/** Why there can be no notifications, or null. */
function unavailable() {
  if (!window.isSecureContext) return "insecure";
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "unsupported";
  return Notification.permission === "denied" ? "denied" : null;
}

async function subscribed(registration, key) {
  try {
    return await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  } catch (error) {
    const words = "the browser could not subscribe at its push service";
    throw Object.assign(new Error(words), { detail: error.message, hint: "try again while it is online" });
  }
}

/** Wait until a worker is at work: before that a browser refuses to subscribe. */
function active(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || !worker) return Promise.resolve();
  return new Promise((resolve, reject) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve();
      if (worker.state === "redundant") reject(new Error("the browser could not start what shows notifications"));
    });
  });
}

function sameKey(subscription, key) {
  const own = subscription.options?.applicationServerKey;
  return Boolean(own) && new Uint8Array(own).every((each, at) => each === bytes(key)[at]);
}

/** The bytes of base64url. */
function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (each) => each.charCodeAt(0));
}
