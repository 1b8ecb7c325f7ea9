"""The drawings of a pipeline: complete, well-formed, and within the window."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipeline.test_graph import Edges, acyclic, pipeline

from headwater import Pipeline
from headwater.drawing import FORMS, as_mermaid, as_svg, as_text
from headwater.drawing.layout import ROOM, Spot, layout
from headwater.errors import PipelineError

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def shop() -> Pipeline:
    """One of each kind, and a source that nobody reads."""
    made = Pipeline("shop")
    made.source("clicks", "session STRING, at TIMESTAMP")
    made.source("orders", "id BIGINT", key="id")
    made.table("customers", "id BIGINT", key="id")
    made.source("unused", "n INT")

    @made.stream()
    def visits(clicks: object, orders: object) -> None:
        """Each visit & its <orders>."""

    @made.view(key="id,day")
    def per_day(visits: object, customers: object) -> None: ...

    @made.sink(object())
    def sent(visits: object, orders: object) -> None: ...

    return made


def test_the_text_shows_who_reads_whom(shop: Pipeline) -> None:
    assert as_text(shop).splitlines() == [
        "clicks                source",
        "│  orders             source, key id",
        "└──┼▶ visits          stream",
        "   └──┼▶ sent         sink",
        "      │  customers    table, key id",
        "      └──┴▶ per_day   view, key id, day",
        "unused                source",
    ]


def test_a_line_that_is_passed_is_not_joined() -> None:
    made = pipeline({"a": ["s"], "b": ["a"], "c": ["s", "b"], "d": ["a", "c"]})
    assert [line.split("   str")[0].rstrip() for line in as_text(made).splitlines()[1:]] == [
        "├▶ a",
        "│  ├▶ b",
        "└──│──┴▶ c",
        "   └─────┴▶ d",
    ]


def test_long_keys_wrap_beside_the_drawing(shop: Pipeline) -> None:
    lines = as_text(shop, 40).splitlines()
    assert "      └──┴▶ per_day   view, key id, day" in lines
    narrow = as_text(shop, 38).splitlines()
    assert narrow[-3:-1] == ["      └──┴▶ per_day   view, key id,", "                      day"]


def test_a_narrow_window_gets_a_list(shop: Pipeline) -> None:
    lines = as_text(shop, 30).splitlines()
    at = lines.index("per_day")
    assert lines[at : at + 4] == ["per_day", "  view, key id, day", "  ◀ visits", "  ◀ customers"]


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 200])
@given(edges=acyclic())
def test_no_line_is_wider_than_the_window(width: int, edges: Edges) -> None:
    assert max(map(len, as_text(pipeline(edges), width).splitlines())) <= width


@given(acyclic())
def test_the_text_names_everything_once(edges: Edges) -> None:
    lines = as_text(pipeline(edges)).splitlines()
    found = [re.sub(r"[│├└┴┼─▶ ]+", " ", line).split()[0] for line in lines]
    assert sorted(found) == sorted([*edges, "s"])


@given(acyclic())
def test_every_line_of_the_text_ends_where_it_is_read(edges: Edges) -> None:
    """Follow the lines from each name upwards: they lead to what the node reads."""
    rows = [line.rstrip() for line in as_text(pipeline(edges)).splitlines()]
    for number, row in enumerate(rows):
        name = re.search(r"\w+", row)
        assert name is not None
        assert sorted(read_by(rows, number)) == sorted(edges.get(name[0], []))


def read_by(rows: list[str], number: int) -> list[str]:
    """Return the names from which lines lead into the name of a row."""
    row = rows[number]
    lead = row[: row.index("▶")] if "▶" in row else ""
    joins = [at for at, mark in enumerate(lead) if mark in "├└┴┼"]
    return [above(rows, number, at) for at in joins]


def above(rows: list[str], number: int, column: int) -> str:
    """Follow a line up to the name that it comes from."""
    for row in reversed(rows[:number]):
        if row[column] not in "│├┼":
            name = re.match(r"\w+", row[column:])
            assert name is not None, f"a line begins at nothing in {row!r}"
            return name[0]
    raise AssertionError("a line begins above the first row")


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
    names = [text.text for text in ElementTree.fromstring(as_svg(made)).iter(f"{SVG}text")]
    assert 'view, key "]; <b>&#`, x\ufffdy' in names


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


def test_the_picture_has_each_kind_key_and_description(shop: Pipeline) -> None:
    root = ElementTree.fromstring(as_svg(shop))
    boxes = {group.get("class"): group for group in root.iter(f"{SVG}g")}
    assert set(boxes) == {"source", "table", "stream", "view", "sink"}
    assert [text.text for text in boxes["view"].iter(f"{SVG}text")] == ["per_day", "view, key id, day"]
    assert boxes["stream"].findtext(f"{SVG}title") == "visits: stream\n\nEach visit & its <orders>."
    assert root.findtext(f"{SVG}title") == "shop"


def test_the_picture_follows_a_dark_page(shop: Pipeline) -> None:
    assert "@media (prefers-color-scheme:dark)" in as_svg(shop)


def test_a_text_too_long_for_its_box_is_whole_in_the_tooltip(shop: Pipeline) -> None:
    key = ",".join(f"column_{number}" for number in range(20))
    shop.sql("wide", "SELECT * FROM orders", key=key)
    groups = ElementTree.fromstring(as_svg(shop)).iter(f"{SVG}g")
    [group] = [each for each in groups if each.findtext(f"{SVG}text") == "wide"]
    assert len(list(group.iter(f"{SVG}text"))[1].text or "") == 44
    assert "column_19" in (group.findtext(f"{SVG}title") or "")


@given(acyclic())
def test_the_picture_is_xml_with_every_node_and_edge_once(edges: Edges) -> None:
    root = ElementTree.fromstring(as_svg(pipeline(edges)))
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"]
    assert sorted(names) == sorted([*edges, "s"])  # type: ignore[type-var]
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    assert len(lines) == sum(map(len, edges.values()))


@st.composite
def sized(draw: st.DrawFn) -> list[list[Spot]]:
    edges = {"s": [], **draw(acyclic())}
    order = ["s", *(node.name for node in pipeline({k: v for k, v in edges.items() if v}).order())]
    sizes = {name: (float(draw(st.integers(10, 300))), float(draw(st.integers(10, 90)))) for name in order}
    return layout({name: edges[name] for name in order}, sizes)


@given(sized())
def test_boxes_do_not_overlap_and_lines_go_from_one_layer_to_the_next(layers: list[list[Spot]]) -> None:
    for number, layer in enumerate(layers):
        for upper, lower in pairwise(layer):
            assert upper.y + upper.height / 2 + ROOM <= lower.y - lower.height / 2 + 1e-6
        for spot in layer:
            assert spot.y - spot.height / 2 >= -1e-6
            assert all(after in layers[number + 1] for after in spot.after)
    for left, right in pairwise(layers):
        assert max(spot.x + spot.width for spot in left) < min(spot.x for spot in right)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_pipeline_is_always_drawn_the_same(shop: Pipeline, form: str) -> None:
    assert FORMS[form](shop) == FORMS[form](shop)


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_pipeline_can_be_drawn(form: str) -> None:
    FORMS[form](Pipeline("empty"))


@pytest.mark.parametrize("form", FORMS)
def test_a_pipeline_with_a_problem_is_not_drawn(shop: Pipeline, form: str) -> None:
    shop.sql("wrong", "SELECT * FROM clikcs", key="id")
    with pytest.raises(PipelineError, match='has no upstream "clikcs"'):
        FORMS[form](shop)
