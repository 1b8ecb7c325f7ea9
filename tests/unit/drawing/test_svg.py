"""The picture: well-formed, complete, and readable in light and dark."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from tests.unit.pipeline.test_graph import Edges, acyclic, pipeline

from headwater import Pipeline
from headwater.drawing.svg import as_svg

SVG = "{http://www.w3.org/2000/svg}"


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


def test_a_key_cannot_break_the_xml() -> None:
    made = Pipeline("shop")
    made.source("end", "n INT")
    made.sql("view", "SELECT * FROM end", key=['"]; <b>&#`', "x\x00y"])
    names = [text.text for text in ElementTree.fromstring(as_svg(made)).iter(f"{SVG}text")]
    assert 'view, key "]; <b>&#`, x\ufffdy' in names


@given(acyclic())
def test_the_picture_is_xml_with_every_node_and_edge_once(edges: Edges) -> None:
    root = ElementTree.fromstring(as_svg(pipeline(edges)))
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"]
    assert sorted(names) == sorted([*edges, "s"])  # type: ignore[type-var]
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    assert len(lines) == sum(map(len, edges.values()))
