// Where the nodes of a pipeline go, and how its edges run: a layered drawing after Sugiyama, from left to right in the
// direction of the data. A node's layer is the longest path to it. An edge that passes layers has a slot of its own in
// each of them, between the nodes, and bends only between layers. Invariant: nodes do not overlap, and no edge runs
// behind a node. Parts of the pipeline that have nothing to do with each other stand below each other. It knows nothing
// of the page, so that this can be tested.

const SWEEPS = 12;
const LANE = 14; // the height of the slot in which an edge passes a layer

/**
 * Place nodes, given as [{name, upstreams}], of one size.
 * Returns {width, height, nodes: [{name, x, y, layer}], edges: [{from, to, points}]}: points are the ends of level pieces
 * of an edge, two by two, between which it bends.
 */
export function layout(nodes, { width, height, across, between }) {
  const whole = { width: 0, height: 0, nodes: [], edges: [] };
  for (const part of components(nodes)) {
    const layers = orderLayers(build(part, height));
    for (let sweep = 0; sweep < SWEEPS; sweep += 1) settle(layers, sweep, between);
    below(whole, measured(layers, width, height, across), between);
  }
  return whole;
}

/** The nodes that are connected, whichever way, in the order in which the first of them is declared. */
function components(nodes) {
  const of = new Map(nodes.map((node) => [node.name, [node]]));
  for (const node of nodes) {
    for (const each of (node.upstreams ?? []).filter((name) => of.has(name))) {
      const [one, other] = [of.get(each), of.get(node.name)];
      if (one === other) continue;
      one.push(...other);
      for (const moved of other) of.set(moved.name, one);
    }
  }
  const declared = new Map(nodes.map((node, at) => [node, at]));
  return [...new Set(of.values())].map((part) => part.sort((one, other) => declared.get(one) - declared.get(other)));
}

function below(whole, part, between) {
  const down = whole.nodes.length ? whole.height + between : 0;
  whole.nodes.push(...part.nodes.map((node) => ({ ...node, y: node.y + down })));
  whole.edges.push(
    ...part.edges.map((each) => ({ ...each, points: each.points.map(({ x, y }) => ({ x, y: y + down })) })),
  );
  whole.width = Math.max(whole.width, part.width);
  whole.height = down + part.height;
}

/** The layers, with slots for nodes and for edges that pass, each knowing those before and after it. */
function build(nodes, height) {
  const slots = new Map();
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const depth = (name, path) => {
    const known = slots.get(name);
    if (known) return known.layer;
    const read = (byName.get(name).upstreams ?? []).filter((each) => byName.has(each) && !path.has(each));
    const layer = read.length ? 1 + Math.max(...read.map((each) => depth(each, new Set(path).add(name)))) : 0;
    slots.set(name, { name, layer, height, before: [], after: [] });
    return layer;
  };
  for (const node of nodes) depth(node.name, new Set());
  const layers = Array.from({ length: 1 + Math.max(-1, ...[...slots.values()].map((slot) => slot.layer)) }, () => []);
  for (const slot of slots.values()) layers[slot.layer].push(slot);
  for (const node of nodes)
    for (const each of node.upstreams ?? []) join(slots.get(each), slots.get(node.name), layers);
  return layers;
}

function join(start, end, layers) {
  if (!start || start.layer >= end.layer) return;
  let at = start;
  for (let layer = start.layer + 1; layer < end.layer; layer += 1) {
    const lane = { name: null, layer, height: LANE, before: [], after: [], edge: [start.name, end.name] };
    layers[layer].push(lane);
    connect(at, lane);
    at = lane;
  }
  connect(at, end);
}

function connect(one, other) {
  one.after.push(other);
  other.before.push(one);
}

/** Order each layer by the middle of its neighbours, forwards and backwards; the order with the fewest crossings stays. */
function orderLayers(layers) {
  number(layers);
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(best);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const forward = sweep % 2 === 0;
    for (const layer of forward ? layers.slice(1) : layers.slice(0, -1).reverse())
      sortByMiddle(layer, forward ? "before" : "after");
    exchange(layers);
    const now = crossings(layers);
    if (now < fewest) [best, fewest] = [layers.map((layer) => [...layer]), now];
  }
  number(best);
  return best;
}

function number(layers) {
  for (const layer of layers)
    layer.forEach((slot, at) => {
      slot.at = at;
    });
}

function sortByMiddle(layer, side) {
  const middle = new Map(layer.map((slot) => [slot, mean(slot[side].map((each) => each.at)) ?? slot.at]));
  layer.sort((one, other) => middle.get(one) - middle.get(other));
  number([layer]);
}

/** Exchange two slots that stand beside each other wherever that leaves fewer crossings. */
function exchange(layers) {
  for (const layer of layers) {
    for (let at = 1; at < layer.length; at += 1) {
      const [one, other] = [layer[at - 1], layer[at]];
      const cost = (upper, lower) => pairs(upper.before, lower.before) + pairs(upper.after, lower.after);
      if (cost(other, one) < cost(one, other)) {
        [layer[at - 1], layer[at]] = [other, one];
        number([layer]);
      }
    }
  }
}

function pairs(upper, lower) {
  return upper.reduce((sum, one) => sum + lower.filter((other) => other.at < one.at).length, 0);
}

/** How many pairs of edges cross. */
export function crossings(layers) {
  number(layers);
  let sum = 0;
  for (const layer of layers) {
    for (let low = 1; low < layer.length; low += 1) {
      for (let high = 0; high < low; high += 1) sum += pairs(layer[high].after, layer[low].after);
    }
  }
  return sum;
}

/** Move slots towards their neighbours as far as there is room; in the last sweeps towards those on both sides. */
function settle(layers, sweep, between) {
  const forward = sweep % 2 === 0;
  for (const layer of forward ? layers : [...layers].reverse()) {
    const wishes = layer.map((slot) => {
      const near = sweep < SWEEPS - 2 ? slot[forward ? "before" : "after"] : [...slot.before, ...slot.after];
      return mean(near.map((each) => each.y ?? 0)) ?? slot.y ?? 0;
    });
    stack(layer, wishes, between);
  }
}

/** The positions nearest to the wished ones, in order and without overlap: those that collide move as one block. */
function stack(layer, wishes, between) {
  const offsets = [];
  layer.forEach((slot, at) => {
    const above = layer[at - 1];
    offsets.push(above ? offsets[at - 1] + above.height / 2 + between + slot.height / 2 : 0);
  });
  const blocks = [];
  wishes.forEach((wish, at) => {
    let block = { start: wish - offsets[at], size: 1 };
    while (blocks.length && blocks.at(-1).start > block.start) {
      const last = blocks.pop();
      const size = last.size + block.size;
      block = { start: (last.start * last.size + block.start * block.size) / size, size };
    }
    blocks.push(block);
  });
  const starts = blocks.flatMap(({ start, size }) => Array(size).fill(start));
  layer.forEach((slot, at) => {
    slot.y = starts[at] + offsets[at];
  });
}

function measured(layers, width, height, across) {
  const slots = layers.flat();
  const top = Math.min(0, ...slots.map((slot) => slot.y - slot.height / 2));
  const lowest = Math.max(0, ...slots.map((slot) => slot.y + slot.height / 2));
  for (const slot of slots) [slot.x, slot.y] = [slot.layer * (width + across), slot.y - top];
  const nodes = slots.filter((slot) => slot.name !== null);
  return {
    width: layers.length ? layers.length * width + (layers.length - 1) * across : 0,
    height: lowest - top,
    nodes: nodes.map(({ name, x, y, layer }) => ({ name, x, y: y - height / 2, layer })),
    edges: nodes.flatMap((slot) => slot.after.map((next) => edge(slot, next, width, height))),
  };
}

/** An edge from a node to the next one, along its lanes; its ends are spread over the sides of the nodes. */
function edge(start, first, width, height) {
  const points = [{ x: start.x + width, y: port(start, "after", first, height) }];
  let [before, at] = [start, first];
  while (at.name === null) {
    points.push({ x: at.x, y: at.y }, { x: at.x + width, y: at.y });
    [before, at] = [at, at.after[0]];
  }
  points.push({ x: at.x, y: port(at, "before", before, height) });
  return { from: start.name, to: at.name, points };
}

function port(slot, side, neighbour, height) {
  const beside = [...slot[side]].sort((one, other) => one.y - other.y);
  const room = Math.min(18, (height - 16) / Math.max(1, beside.length - 1));
  return slot.y + (beside.indexOf(neighbour) - (beside.length - 1) / 2) * room;
}

/** The path of an edge in SVG: level along nodes, a curve between two layers. */
export function curve(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length; at += 1) {
    const [one, other] = [points[at - 1], points[at]];
    const middle = (one.x + other.x) / 2;
    path +=
      at % 2 === 1 ? `C${middle} ${one.y} ${middle} ${other.y} ${other.x} ${other.y}` : `L${other.x} ${other.y}`;
  }
  return path;
}

function mean(values) {
  return values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : null;
}
