// Elements, made and updated without HTML strings: what a row or a topic contains is text here and never markup,
// and a strict content security policy has nothing to forbid. `morph` updates what is on the page to what it should be
// and leaves alone what is the same, so that focus, selection and scroll position outlive an update every second.

const SVG = "http://www.w3.org/2000/svg";

/** An element: properties that begin with `on` are handlers, `style` is an object, null and false are left out. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An element of SVG. */
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) set(element, name, value);
  element.append(...flat(children));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    element[name] = value;
    (element.handlers ??= new Set()).add(name);
  } else if (name === "style") {
    for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Children as nodes: arrays laid flat, nothing for null and false, text for the rest. */
function flat(children) {
  return children
    .flat(Infinity)
    .filter((each) => each !== null && each !== undefined && each !== false)
    .map((each) => (each instanceof Node ? each : document.createTextNode(String(each))));
}

/** An element that lives on the page by itself, such as a chart or a form: a stand-in for it among children. */
export function keep(element) {
  element.dataset.keep = "";
  const stub = h("template", { "data-stub": true });
  stub.live = element;
  return stub;
}

/** Make the children of an element what they should be; elements with `data-key` keep their identity. */
export function show(parent, ...children) {
  const wanted = flat(children);
  const keyed = new Map(
    [...parent.children].filter((each) => each.dataset?.key).map((each) => [each.dataset.key, each]),
  );
  let at = parent.firstChild;
  for (const each of wanted) {
    const node = each.live ?? each;
    const same =
      node.parentNode === parent && each.live
        ? node
        : node.dataset?.key
          ? keyed.get(node.dataset.key)
          : at && !at.dataset?.key
            ? at
            : null;
    const found = same && (same === node || alike(same, node)) ? same : null;
    if (found && found === at) at = at.nextSibling;
    else parent.insertBefore(found ?? whole(node), at);
    if (found && found !== node) morph(found, node);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** A new element, with what stands in for others exchanged for them. */
function whole(node) {
  for (const stub of node.querySelectorAll?.("[data-stub]") ?? []) stub.replaceWith(stub.live);
  return node;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.dataset?.keep === undefined;
}

function morph(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes])
    if (name !== "style" && !wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...wanted.attributes])
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== wanted.style.cssText) old.style.cssText = wanted.style.cssText;
  for (const name of old.handlers ?? []) if (!wanted.handlers?.has(name)) old[name] = null;
  for (const name of wanted.handlers ?? []) old[name] = wanted[name];
  old.handlers = wanted.handlers;
  show(old, ...wanted.childNodes);
}
