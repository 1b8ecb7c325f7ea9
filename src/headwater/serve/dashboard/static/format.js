// How figures and times are written: short, aligned, the same everywhere. No module but this one rounds a number.

const COUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const NONE = "–";

/** 1284 → "1,284"; from a million on "1.28 M". */
export function count(value) {
  if (!known(value)) return NONE;
  if (Math.abs(value) < 1e6) return COUNT.format(value);
  const [unit, name] = Math.abs(value) < 1e9 ? [1e6, "M"] : [1e9, "G"];
  return `${significant(value / unit)} ${name}`;
}

/** "1 row", "2 rows". */
export function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** 0.25 → "0.25", 3.44 → "3.4", 54.4 → "54", 1284 → "1,284": of what happens in a second. */
export function rate(value) {
  if (!known(value)) return NONE;
  if (value === 0) return "0";
  if (value < 0.01) return "<0.01";
  if (value < 1) return value.toFixed(2);
  return value < 9.95 ? value.toFixed(1) : count(Math.round(value));
}

/** A length of time: "4 ms", "0.21 s", "5.1 s", "41 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". */
export function seconds(value) {
  if (!known(value)) return NONE;
  if (value < 0) return `−${seconds(-value)}`;
  if (value === 0) return "0 s";
  if (value < 0.01) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 0.995) return `${value.toFixed(2)} s`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  const minutes = Math.round(value / 60);
  if (minutes < 1440) return two(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(value / 3600);
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

function two(large, unit, small, lesser) {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${lesser}`;
}

/** 960000 → "960 kB". */
export function bytes(value) {
  if (!known(value)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, Math.abs(value))) / 3)));
  return `${power === 0 ? count(value) : significant(value / 1000 ** power)} ${units[power]}`;
}

/** 0.0182 → "1.8 %". */
export function percent(part) {
  if (!known(part)) return NONE;
  if (part > 0 && part < 0.001) return "<0.1 %";
  if (part >= 0.9995 && part < 1) return ">99.9 %";
  const whole = part >= 0.0995 && (part < 0.995 || part >= 1);
  return `${whole ? Math.round(part * 100) : (part * 100).toFixed(1).replace(/\.0$/, "")} %`;
}

/** The time of the day, here: "18:04:09"; with the date where that is not today's. */
export function time(value, now = new Date()) {
  const moment = instant(value);
  if (moment === null) return NONE;
  const clock = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(padded).join(":");
  if (moment.toDateString() === now.toDateString()) return clock;
  return `${moment.getFullYear()}-${padded(moment.getMonth() + 1)}-${padded(moment.getDate())} ${clock}`;
}

/** Seconds from a point in time until now; null where there is none. */
export function age(value, now = Date.now()) {
  const moment = instant(value);
  return moment === null ? null : (now - moment.getTime()) / 1000;
}

/** A value of a row as text: whole numbers as they are, for they may be names of things and be pasted elsewhere. */
export function cell(value, type = "", places = null) {
  if (value === null || value === undefined) return NONE;
  if (typeof value === "number")
    return places !== null ? value.toFixed(places) : Number.isInteger(value) ? String(value) : decimal(value);
  if (typeof value === "string" && isTime(type)) return time(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** How many decimal places the numbers of a column need, four at the most, so that their points stand below each other. */
export function places(values) {
  const needed = values
    .filter(known)
    .map((value) => (Number.isInteger(value) ? 0 : Math.min(4, decimal(value).split(".")[1]?.length ?? 0)));
  return Math.max(0, ...needed);
}

/** Whether a column's type is one of points in time. */
export function isTime(type) {
  return /timestamp/i.test(type ?? "");
}

/** Whether a column's type is one of numbers. */
export function isNumber(type) {
  return /^(tinyint|byte|smallint|short|int|integer|bigint|long|u?int\d+|half_?float|float|real|double|dec|numeric|decimal\d*)(?![a-z])/i.test(
    type ?? "",
  );
}

/** A point in time from ISO 8601 or seconds since 1970; null where it is none. */
export function instant(value) {
  if (value === null || value === undefined || value === "") return null;
  const moment = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(moment.getTime()) ? null : moment;
}

function decimal(value) {
  return Math.abs(value) >= 1000 ? value.toFixed(2) : String(Number(value.toPrecision(4)));
}

function significant(value) {
  return Math.abs(value) < 9.995 ? value.toFixed(2) : Math.abs(value) < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

function padded(value) {
  return String(value).padStart(2, "0");
}

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}
