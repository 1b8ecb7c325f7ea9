"""The flowchart: all nodes and edges, and labels that nothing breaks out of."""

from __future__ import annotations

import re

from hypothesis import given
from tests.unit.pipeline.test_graph import Edges, acyclic, pipeline

from headwater import Pipeline
from headwater.drawing.mermaid import as_mermaid


def test_mermaid_tells_kinds_apart(shop: Pipeline) -> None:
    lines = as_mermaid(shop).splitlines()
    assert lines[0] == "flowchart LR"
    assert '  n0(["clicks<br/>source"])' in lines
    assert '  n3[("customers<br/>table, key id")]' in lines
    assert '  n4["visits<br/>stream"]' in lines
    assert '  n5[["per_day<br/>view, key id, day"]]' in lines
    assert '  n6{{"sent<br/>sink"}}' in lines
    assert "  n0 --> n4" in lines


def test_no_key_can_break_out_of_its_label() -> None:
    made = Pipeline("shop")
    made.source("end", "n INT")
    made.sql("view", "SELECT * FROM end", key=['"]; <b>&#`', "x\x00y"])
    line = as_mermaid(made).splitlines()[2]
    assert line == '  n1[["view<br/>view, key #34;#93;#59; #60;b#62;#38;#35;#96;, x#0;y"]]'


@given(acyclic())
def test_mermaid_has_every_node_and_edge_once(edges: Edges) -> None:
    head, *lines = as_mermaid(pipeline(edges)).splitlines()
    boxes = {match[1]: match[2] for line in lines if (match := re.match(r'  (n\d+)\W+"(\w+)<br/>', line))}
    arrows = [match.groups() for line in lines if (match := re.fullmatch(r"  (n\d+) --> (n\d+)", line))]
    assert head == "flowchart LR"
    assert len(lines) == len(boxes) + len(arrows)
    assert sorted(boxes.values()) == sorted([*edges, "s"])
    drawn = sorted((boxes[read], boxes[reader]) for read, reader in arrows)
    assert drawn == sorted((read, reader) for reader, all_read in edges.items() for read in all_read)
