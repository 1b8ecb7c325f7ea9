"""What every drawing says of a declaration, and in which order."""

from __future__ import annotations

from headwater import Pipeline
from headwater.drawing import FORMS
from headwater.drawing.label import everything, label


def test_a_label_is_the_kind_and_the_key_where_there_is_one(shop: Pipeline) -> None:
    assert label(shop["clicks"]) == "source"
    assert label(shop["per_day"]) == "view, key id, day"


def test_inputs_come_first_and_each_node_after_what_it_reads(shop: Pipeline) -> None:
    names = [each.name for each in everything(shop)]
    assert names[:4] == ["clicks", "orders", "unused", "customers"]
    for each in everything(shop):
        assert all(names.index(read) < names.index(each.name) for read in each.upstreams)


def test_all_drawings_say_the_same_of_a_declaration(shop: Pipeline) -> None:
    for each in everything(shop):
        assert all(label(each) in draw(shop) for draw in FORMS.values())


def test_a_captured_table_is_drawn_behind_its_capture(shop: Pipeline) -> None:
    shop.capture("crm", "postgresql://shop:secret@db/shop")
    shop.table("tiers", "id BIGINT", key="id", captured="crm.tiers")
    names = [each.name for each in everything(shop)]
    assert names.index("crm") < names.index("tiers")
    for draw in FORMS.values():
        assert "crm" in draw(shop)
        assert "secret" not in draw(shop)
