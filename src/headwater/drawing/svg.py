"""A pipeline as SVG, with no other program: boxes in layers, and lines that bend between them.

Boxes bring their own background and colours follow the reader's light or dark setting, so the picture
can be put on any page. Invariant: the result is well-formed XML whatever names and descriptions hold.
"""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import pairwise
from xml.sax.saxutils import escape

from rich.cells import cell_len, set_cell_size

from headwater.drawing.label import everything, label
from headwater.drawing.layout import Slot, layout
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.pipeline import Pipeline

MARGIN, HEIGHT, PAD = 16.0, 46.0, 14.0
LONGEST = 44
"""Longer texts are cut; the whole text is in the box's tooltip."""
_LETTER = {"name": 8.43, "said": 6.63}
"""How wide a letter of 14 and of 11 pixels is in a monospaced font."""
_COLOURS = {
    "source": ("#dbeafe", "#2563eb", "#172b4d"),
    "table": ("#d1fae5", "#059669", "#12352a"),
    "stream": ("#fef3c7", "#d97706", "#3b2c10"),
    "view": ("#ede9fe", "#7c3aed", "#2b2147"),
    "sink": ("#fce7f3", "#db2777", "#411a30"),
}
"""Of each kind: the box in light, its border, and the box in dark."""
_PLAIN = ("#f3f4f6", "#6b7280", "#1f2937")
"""The colours of a kind that has none of its own."""
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_svg(pipeline: Pipeline) -> str:
    """Return the picture.

    >>> shop = Pipeline("shop")
    >>> _ = shop.source("orders", "id BIGINT")
    >>> as_svg(shop).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    True
    """
    declared = {each.name: each for each in everything(pipeline)}
    edges = {name: each.upstreams for name, each in declared.items()}
    layers = layout(edges, {name: _size(each) for name, each in declared.items()})
    slots = [slot for layer in layers for slot in layer]
    width = max((slot.x + slot.width for slot in slots), default=0.0) + 2 * MARGIN
    height = max((slot.y + slot.height / 2 for slot in slots), default=0.0) + 2 * MARGIN
    boxes = [(slot, declared[slot.name]) for slot in slots if slot.name is not None]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" role="img">',
            f"<title>{_text(pipeline.name)}</title>",
            _style({each.kind for each in declared.values()}),
            *(_line(slot, after) for slot, _ in boxes for after in slot.after),
            *(_box(slot, each) for slot, each in boxes),
            "</svg>",
        ]
    )


def _size(declared: Declaration) -> tuple[float, float]:
    texts = (("name", declared.name), ("said", label(declared)))
    return max(cell_len(_cut(text)) * _LETTER[kind] for kind, text in texts) + 2 * PAD, HEIGHT


def _cut(text: str) -> str:
    return text if cell_len(text) <= LONGEST else set_cell_size(text, LONGEST - 1) + "…"


def _text(text: str) -> str:
    """Escape a text, and leave out what XML cannot hold at all."""
    return escape(_INVALID.sub("\ufffd", text))


def _style(kinds: Set[str]) -> str:
    colours = _COLOURS | dict.fromkeys(sorted(kinds - _COLOURS.keys()), _PLAIN)
    light = [f".{kind} rect{{fill:{fill};stroke:{line}}}" for kind, (fill, line, _) in colours.items()]
    dark = [f".{kind} rect{{fill:{fill}}}" for kind, (_, _, fill) in colours.items()]
    return "\n".join(
        [
            "<style>",
            "text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#111827}",
            ".name{font-size:14px;font-weight:600}.said{font-size:11px;fill:#4b5563}",
            ".line{fill:none;stroke:#8b949e;stroke-width:1.6}.tip{fill:#8b949e}",
            *light,
            "@media (prefers-color-scheme:dark){text{fill:#f3f4f6}.said{fill:#b6bcc6}" + "".join(dark) + "}",
            "</style>",
        ]
    )


def _box(slot: Slot, declared: Declaration) -> str:
    x, top, said = slot.x, slot.y - slot.height / 2, label(declared)
    description = f"\n\n{declared.description}"
    return (
        f'<g class="{declared.kind}"><title>{_text(f"{declared.name}: {said}{description}".rstrip())}</title>'
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{slot.width:.1f}" height="{slot.height:.1f}" '
        f'rx="{_corner(declared):.0f}" stroke-width="1.4"/>'
        f'<text class="name" x="{x + PAD:.1f}" y="{top + 20:.1f}">{_text(_cut(declared.name))}</text>'
        f'<text class="said" x="{x + PAD:.1f}" y="{top + 36:.1f}">{_text(_cut(said))}</text></g>'
    )


def _corner(declared: Declaration) -> float:
    """Round what comes from outside, so that the ends of a pipeline show without colours too."""
    return HEIGHT / 2 if declared.external else 6.0


def _line(start: Slot, second: Slot) -> str:
    """Draw an edge from a box through the places where it passes, to the box that it ends in."""
    path = [start, second]
    while path[-1].name is None:
        path.append(path[-1].after[0])
    end = path[-1]
    drawn = f"M{start.x + start.width:.1f},{start.y:.1f}"
    for left, right in pairwise(path):
        drawn += _bend(left.x + left.width, left.y, right.x - (6 if right is end else 0), right.y)
        drawn += f"H{right.x + right.width:.1f}" if right is not end else ""
    tip = f"M{end.x:.1f},{end.y:.1f}l-8,-4v8z"
    return f'<path class="line" d="{drawn}"/><path class="tip" d="{tip}"/>'


def _bend(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (x1 + x2) / 2
    return f"C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
