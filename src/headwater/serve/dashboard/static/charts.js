// Charts by uPlot, in the colours of the page, light or dark, as wide as their place. What a chart shows is also said in
// a sentence, for those who do not see it.

import { h } from "./dom.js";

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const SYNC = "headwater";
const LEAST = 60; // seconds, so that one point alone is in the middle

function colour(name) {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A line over time. `format` writes a value; `hover` hears the value and time below the pointer, or null. */
export class TimeChart {
  #plot = null;
  #data = [[], []];

  constructor({ label, format, height = 96, hover = () => {}, bars = false, signal }) {
    this.element = h("div", { class: "chart", role: "img", "aria-label": label, style: { height: `${height}px` } });
    Object.assign(this, { label, format, height, hover, bars });
    this.#watch(signal);
  }

  /** Show values at times (seconds since 1970); null is a gap. */
  set(times, values) {
    this.#data = [times, values];
    if (this.#plot) this.#plot.setData(this.#data);
    else this.#draw();
    this.element.setAttribute("aria-label", this.#sentence(values));
  }

  #sentence(values) {
    const known = values.filter((each) => each !== null && each !== undefined);
    if (!known.length) return `${this.label}: nothing yet`;
    const least = this.format(Math.min(...known));
    return `${this.label}: ${this.format(known.at(-1))} at last, between ${least} and ${this.format(Math.max(...known))}`;
  }

  #draw() {
    const width = this.element.clientWidth;
    if (!width || !this.#data[0].length) return;
    this.#plot = new globalThis.uPlot(this.#options(width), this.#data, this.element);
  }

  #options(width) {
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--soft"), font: FONT, ticks: { show: false } };
    const line = {
      stroke: colour("--accent"),
      width: 1.5,
      fill: colour("--accent-soft"),
      points: { show: this.bars, size: 5, fill: colour("--accent") },
      spanGaps: false,
    };
    return {
      width,
      height: this.height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, sync: { key: SYNC, setSeries: false }, drag: { x: true, y: false }, points: { size: 7 } },
      scales: {
        x: { range: (_plot, low, high) => (high - low < LEAST ? [low - LEAST / 2, high + LEAST / 2] : [low, high]) },
        y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.1 : 1] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 22,
          gap: 4,
          space: 48,
          values: (_plot, splits, _axis, _space, step) => splits.map((each) => hour(each, step)),
        },
        {
          ...axis,
          grid,
          size: (_plot, values) => 12 + 7 * Math.max(2, ...(values ?? []).map((each) => each.length)),
          gap: 6,
          space: 28,
          values: (_plot, splits) => splits.map((each) => this.format(each)),
        },
      ],
      series: [{}, line],
      hooks: { setCursor: [(plot) => this.#hovered(plot)] },
    };
  }

  #hovered(plot) {
    const at = plot.cursor.idx;
    this.hover(at === null || at === undefined ? null : { time: plot.data[0][at], value: plot.data[1][at] });
  }

  #watch(signal) {
    const sizes = new ResizeObserver(() => {
      const width = this.element.clientWidth;
      if (!this.#plot) this.#draw();
      else if (width && width !== this.#plot.width) this.#plot.setSize({ width, height: this.height });
    });
    sizes.observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#plot?.redraw(false), {
      signal,
    });
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      this.#plot?.destroy();
    });
  }
}

/** A tick of the time axis: with seconds where these are told apart, the day where there are several. */
function hour(seconds, step) {
  const moment = new Date(seconds * 1000);
  if (step >= 86400) return `${moment.getMonth() + 1}-${String(moment.getDate()).padStart(2, "0")}`;
  const shown = { hour: "2-digit", minute: "2-digit", hour12: false };
  return moment.toLocaleTimeString("en-GB", step < 60 ? { ...shown, second: "2-digit" } : shown);
}
