"""Where the boxes of a drawing go: layers from left to right by depth, few crossings, short lines.

Lines that pass a layer get a slot in it as boxes do, so that they run between boxes and not through
them. Invariant: boxes do not overlap, and every edge goes from one layer to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 8
ROOM = 18.0
"""The least room between two boxes above each other."""
BESIDE = 64.0
"""The room between two layers, where the lines bend."""


@dataclass
class Slot:
    """A box, or the point where a line passes a layer (``name`` is None)."""

    layer: int
    width: float
    height: float
    name: str | None = None
    x: float = 0.0
    y: float = 0.0
    """The middle."""
    before: list[Slot] = field(default_factory=list)
    after: list[Slot] = field(default_factory=list)


Size = tuple[float, float]


def layout(edges: Mapping[str, Sequence[str]], sizes: Mapping[str, Size]) -> list[list[Slot]]:
    """Place names, each given with those it reads and after them; return the layers.

    >>> [[slot.name for slot in layer] for layer in layout({"a": [], "b": ["a"]}, {"a": (9, 9), "b": (9, 9)})]
    [['a'], ['b']]
    """
    layers = _layers(_boxes(edges, sizes), edges)
    for sweep in range(SWEEPS):
        _in_sweep(layers, sweep, _sort)
    _stack(layers)
    for sweep in range(SWEEPS):
        _in_sweep(layers, sweep, _settle)
    _spread(layers)
    return layers


def _boxes(edges: Mapping[str, Sequence[str]], sizes: Mapping[str, Size]) -> dict[str, Slot]:
    boxes: dict[str, Slot] = {}
    for name, read in edges.items():
        depth = max((boxes[each].layer + 1 for each in read), default=0)
        boxes[name] = Slot(depth, *sizes[name], name)
    return boxes


def _layers(boxes: dict[str, Slot], edges: Mapping[str, Sequence[str]]) -> list[list[Slot]]:
    layers: list[list[Slot]] = [[] for _ in range(max((b.layer + 1 for b in boxes.values()), default=0))]
    for box in boxes.values():
        layers[box.layer].append(box)
    for name, read in edges.items():
        for each in read:
            _connect(boxes[each], boxes[name], layers)
    return layers


def _connect(start: Slot, end: Slot, layers: list[list[Slot]]) -> None:
    """Draw an edge through the layers between two boxes."""
    at = start
    for layer in range(start.layer + 1, end.layer):
        passing = Slot(layer, 0.0, 0.0)
        layers[layer].append(passing)
        _join(at, passing)
        at = passing
    _join(at, end)


def _join(start: Slot, end: Slot) -> None:
    start.after.append(end)
    end.before.append(start)


Neighbours = Callable[[Slot], list[Slot]]


def _in_sweep(
    layers: list[list[Slot]], sweep: int, arrange: Callable[[list[Slot], list[Slot], Neighbours], None]
) -> None:
    """Arrange each layer by the one before it, then, in the next sweep, by the one after it."""
    forward = sweep % 2 == 0
    ordered = layers if forward else layers[::-1]
    for beside, layer in pairwise(ordered):
        arrange(layer, beside, (lambda slot: slot.before) if forward else (lambda slot: slot.after))


def _sort(layer: list[Slot], beside: list[Slot], neighbours: Neighbours) -> None:
    """Order a layer by where its neighbours are, on average; one without any stays where it is."""
    at = {id(slot): index for index, slot in enumerate(beside)}
    index = {id(slot): float(number) for number, slot in enumerate(layer)}

    def middle(slot: Slot) -> float:
        near = [at[id(each)] for each in neighbours(slot)]
        return sum(near) / len(near) if near else index[id(slot)]

    layer.sort(key=middle)


def _stack(layers: list[list[Slot]]) -> None:
    for layer in layers:
        _stack_at(layer, [0.0] * len(layer))


def _settle(layer: list[Slot], _beside: list[Slot], neighbours: Neighbours) -> None:
    """Move a layer's boxes towards the middle of their neighbours, as far as they have room."""
    wanted = []
    for slot in layer:
        near = [each.y for each in neighbours(slot)] or [slot.y]
        wanted.append(sum(near) / len(near))
    _stack_at(layer, wanted)


def _stack_at(layer: list[Slot], wanted: list[float]) -> None:
    """Give each box the position nearest to the wanted one, in order and without overlap.

    Boxes whose wishes collide move as one block to the average of their wishes.
    """
    offsets, blocks = _offsets(layer), list[tuple[float, int]]()
    for wish, offset in zip(wanted, offsets, strict=True):
        block = (wish - offset, 1)
        while blocks and blocks[-1][0] > block[0]:
            total, count = blocks.pop()
            block = ((total * count + block[0] * block[1]) / (count + block[1]), count + block[1])
        blocks.append(block)
    starts = [start for start, count in blocks for _ in range(count)]
    for slot, start, offset in zip(layer, starts, offsets, strict=True):
        slot.y = start + offset


def _offsets(layer: list[Slot]) -> list[float]:
    """Return how far the middle of each box is below that of the first, when they are stacked closely."""
    offsets = [0.0]
    for above, below in pairwise(layer):
        offsets.append(offsets[-1] + above.height / 2 + ROOM + below.height / 2)
    return offsets[: len(layer)]


def _spread(layers: list[list[Slot]]) -> None:
    """Put the layers beside each other, and the whole where its top left corner is at nought."""
    top = min((slot.y - slot.height / 2 for layer in layers for slot in layer), default=0.0)
    left = 0.0
    for layer in layers:
        width = max(slot.width for slot in layer)
        for slot in layer:
            slot.x, slot.y = left, slot.y - top
            slot.width = width
        left += width + BESIDE
