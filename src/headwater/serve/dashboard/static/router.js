// The address after the # is the page: it can be bookmarked, sent to somebody, and gone back to.

/** The parts and the query of an address such as "#/topics/orders?from=3". */
export function parse(hash) {
  const [where, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = where.split("/").filter(Boolean).map(decoded);
  return { parts, query: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page. */
export function link(...parts) {
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

/** The page whose pattern fits, such as ["topics", ":topic"], with its parameters; null where none does. */
export function match(routes, parts) {
  for (const { pattern, page } of routes) {
    if (pattern.length !== parts.length) continue;
    if (!pattern.every((part, at) => part.startsWith(":") || part === parts[at])) continue;
    const named = pattern
      .map((part, at) => [part.slice(1), parts[at], part.startsWith(":")])
      .filter((each) => each[2]);
    return { page, parameters: Object.fromEntries(named) };
  }
  return null;
}
