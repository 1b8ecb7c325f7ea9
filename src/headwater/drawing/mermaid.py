"""A pipeline as a Mermaid flowchart, as GitHub and many wikis show it.

Invariant: no name can end a label or begin a keyword: ids are numbers, and labels are escaped.
"""

from __future__ import annotations

import re

from headwater.drawing.label import everything, label
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.pipeline import Pipeline

_SHAPES = {
    "source": ("([", "])"),
    "table": ("[(", ")]"),
    "stream": ("[", "]"),
    "view": ("[[", "]]"),
    "sink": ("{{", "}}"),
}
_PLAIN = ("[", "]")
"""The shape of a kind that has none of its own."""


def as_mermaid(pipeline: Pipeline) -> str:
    """Return the flowchart.

    >>> shop = Pipeline("shop")
    >>> _ = shop.source("orders", "id BIGINT")
    >>> _ = shop.sql("all_orders", "SELECT * FROM orders", key="id")
    >>> print(as_mermaid(shop))
    flowchart LR
      n0(["orders<br/>source"])
      n1[["all_orders<br/>view, key id"]]
      n0 --> n1
    """
    declared = everything(pipeline)
    ids = {each.name: f"n{number}" for number, each in enumerate(declared)}
    nodes = [f"  {ids[each.name]}{_shape(each)}" for each in declared]
    edges = [f"  {ids[read]} --> {ids[each.name]}" for each in declared for read in each.upstreams]
    return "\n".join(["flowchart LR", *nodes, *edges])


def _shape(declared: Declaration) -> str:
    begin, end = _SHAPES.get(declared.kind, _PLAIN)
    return f'{begin}"{_escaped(declared.name)}<br/>{_escaped(label(declared))}"{end}'


def _escaped(text: str) -> str:
    """Write every character that may mean something to Mermaid by its number."""
    return re.sub(r"[^\w ,.-]", lambda found: f"#{ord(found[0])};", text)
