"""The layout of the graph: nodes that do not overlap, and edges that run around them."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

SIZE = {"width": 200, "height": 56, "across": 80, "between": 14}
Nodes = list[dict[str, Any]]
Plan = dict[str, Any]
ON_ONE_PAGE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
_PLACE = """async ([nodes, size]) => {
  const { layout } = await import("/static/graph/layout.js");
  return layout(nodes, size);
}"""


@st.composite
def pipelines(draw: st.DrawFn) -> Nodes:
    """Nodes that read some of those before them."""
    count = draw(st.integers(1, 14))
    nodes: Nodes = []
    for number in range(count):
        names = [each["name"] for each in nodes]
        read = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
        nodes.append({"name": f"n{number}", "upstreams": read})
    return nodes


@pytest.fixture
def place(page: Page, troubled: str) -> Any:
    page.goto(f"{troubled}#/operations")
    return lambda nodes: page.evaluate(_PLACE, [nodes, SIZE])


def at_curve(points: list[dict[str, float]]) -> list[tuple[float, float]]:
    """Return points along an edge: level pieces, and curves with level ends between them."""
    found = []
    for number, (one, other) in enumerate(pairwise(points)):
        for step in range(21):
            t = step / 20
            ease = t if number % 2 else 3 * t * t - 2 * t * t * t
            middle = (one["x"] + other["x"]) / 2
            x = (
                one["x"] * (1 - t) ** 3
                + 3 * middle * t * (1 - t) ** 2
                + 3 * middle * t * t * (1 - t)
                + other["x"] * t**3
            )
            found.append((x, one["y"] + (other["y"] - one["y"]) * ease))
    return found


def inside(node: dict[str, float], x: float, y: float) -> bool:
    right, bottom = node["x"] + SIZE["width"], node["y"] + SIZE["height"]
    return node["x"] + 0.1 < x < right - 0.1 and node["y"] + 0.1 < y < bottom - 0.1


@ON_ONE_PAGE
@given(nodes=pipelines())
def test_no_edge_runs_behind_a_node_and_no_two_nodes_overlap(place: Any, nodes: Nodes) -> None:
    plan: Plan = place(nodes)
    for one, other in combinations(plan["nodes"], 2):
        apart_across = abs(one["x"] - other["x"]) >= SIZE["width"]
        assert apart_across or abs(one["y"] - other["y"]) >= SIZE["height"]
    for edge in plan["edges"]:
        for x, y in at_curve(edge["points"]):
            assert [node["name"] for node in plan["nodes"] if inside(node, x, y)] == []


@ON_ONE_PAGE
@given(nodes=pipelines())
def test_every_edge_is_drawn_once_and_in_the_direction_of_the_data(place: Any, nodes: Nodes) -> None:
    plan: Plan = place(nodes)
    declared = {(read, node["name"]) for node in nodes for read in node["upstreams"]}
    assert sorted((edge["from"], edge["to"]) for edge in plan["edges"]) == sorted(declared)
    x = {node["name"]: node["x"] for node in plan["nodes"]}
    for node in nodes:
        longest = max((x[read] for read in node["upstreams"]), default=-280.0)
        assert x[node["name"]] == longest + SIZE["width"] + SIZE["across"]
    for edge in plan["edges"]:
        across = [point["x"] for point in edge["points"]]
        assert across == sorted(across)


@ON_ONE_PAGE
@given(parents=st.lists(st.integers(0, 20), min_size=1, max_size=14))
def test_a_tree_is_drawn_without_crossings(place: Any, parents: list[int]) -> None:
    nodes: Nodes = [{"name": "n0", "upstreams": []}]
    for number, parent in enumerate(parents, start=1):
        nodes.append({"name": f"n{number}", "upstreams": [f"n{parent % number}"]})
    assert crossings(place(nodes)) == 0


def crossings(plan: Plan) -> int:
    """Return how many pairs of edges change sides between two layers."""
    pieces = [
        (one["x"], other["x"], one["y"], other["y"])
        for edge in plan["edges"]
        for one, other in zip(edge["points"][::2], edge["points"][1::2], strict=True)
    ]
    return sum(
        (one[2] - other[2]) * (one[3] - other[3]) < -1e-6
        for one, other in combinations(pieces, 2)
        if one[:2] == other[:2]
    )


def test_a_graph_that_is_no_pipeline_is_drawn_all_the_same(place: Any) -> None:
    circle = [{"name": "a", "upstreams": ["b"]}, {"name": "b", "upstreams": ["a", "missing"]}]
    assert sorted(node["name"] for node in place(circle)["nodes"]) == ["a", "b"]
    assert place([]) == {"width": 0, "height": 0, "nodes": [], "edges": []}
