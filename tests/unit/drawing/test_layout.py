"""Where boxes go: beside and below each other, never over each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipeline.test_graph import acyclic, pipeline

from headwater.drawing.layout import BESIDE, ROOM, Slot, layout


@st.composite
def sized(draw: st.DrawFn) -> list[list[Slot]]:
    edges = {"s": [], **draw(acyclic())}
    order = ["s", *(node.name for node in pipeline({k: v for k, v in edges.items() if v}).order())]
    sizes = {name: (float(draw(st.integers(10, 300))), float(draw(st.integers(10, 90)))) for name in order}
    return layout({name: edges[name] for name in order}, sizes)


@given(sized())
def test_boxes_do_not_overlap_and_lines_go_from_one_layer_to_the_next(layers: list[list[Slot]]) -> None:
    for number, layer in enumerate(layers):
        for upper, lower in pairwise(layer):
            assert upper.y + upper.height / 2 + ROOM <= lower.y - lower.height / 2 + 1e-6
        for spot in layer:
            assert spot.y - spot.height / 2 >= -1e-6
            assert all(after in layers[number + 1] for after in spot.after)
    for left, right in pairwise(layers):
        assert max(spot.x + spot.width for spot in left) < min(spot.x for spot in right)


def test_a_line_that_passes_a_layer_has_a_place_of_its_own_in_it() -> None:
    edges = {"a": [], "b": ["a"], "c": ["a", "b"]}
    _, middle, _ = layout(edges, dict.fromkeys(edges, (30.0, 20.0)))
    assert sorted(spot.name or "" for spot in middle) == ["", "b"]


def test_layers_are_as_wide_as_their_widest_box_and_stand_beside_each_other() -> None:
    sizes = {"a": (9.0, 9.0), "b": (40.0, 9.0), "c": (9.0, 9.0)}
    [[first, second], [third]] = layout({"a": [], "b": [], "c": ["a"]}, sizes)
    assert (first.width, second.width, first.x, third.x) == (40, 40, 0, 40 + BESIDE)


def test_nothing_is_laid_out_as_nothing() -> None:
    assert layout({}, {}) == []
