"""What is said of a topic that is not the one that was meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater import topic, topic_errors

ORDERS = topic.create("orders", "id BIGINT, at TIMESTAMP", key="id", event_time="at")


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("order", ["orders", "clicks"], "orders"),
        ("shop.totals.late", ["orders"], "it is made with the first row that goes there"),
        ("shop.totals.lat", ["shop.totals.late"], "shop.totals.late"),
        ("quux", ["orders", "shop.totals.dead"], "headwater topic create quux"),
        ("returns", [], "headwater topic create returns"),
        ("hotel.mails", ["orders"], "is a stream of a pipeline, `headwater run` makes it"),
    ],
)
def test_an_unknown_topic_comes_with_what_may_have_been_meant(name: str, names: list[str], said: str) -> None:
    error = topic_errors.unknown(name, names)
    assert error.message == f'no topic "{name}"'
    assert said in (error.hint or "")


def test_of_many_topics_an_error_names_ten_and_none_that_a_pipeline_has_set_aside() -> None:
    names = [f"t{number}" for number in range(topic_errors.MOST_LISTED + 1)]
    detail = topic_errors.unknown("returns", [*names, "shop.totals.late"]).detail or ""
    assert detail == f"there are: {', '.join(names[:-1])}, …"
    assert topic_errors.unknown("returns", ["shop.totals.late"]).detail == "there are no topics yet"


def test_a_declaration_is_the_same_whatever_the_topic_was_before_and_whoever_made_it() -> None:
    wider = topic.altered(ORDERS, schema="id BIGINT, at TIMESTAMP, amount DOUBLE")
    declared = topic.create("orders", "id BIGINT, at TIMESTAMP, amount DOUBLE", key="id", event_time="at")
    assert topic_errors.same(replace(wider, id="a"), declared)
    assert not topic_errors.same(wider, ORDERS)


def test_a_difference_is_told_setting_by_setting() -> None:
    other = topic.create("orders", "id BIGINT, at TIMESTAMP", partitions=4)
    assert topic_errors.different(ORDERS, other) == (
        "key: it has id, asked for none; event_time: it has at, asked for none;"
        " partitions: it has 1, asked for 4"
    )


def test_a_topic_that_was_made_again_is_told_by_both_identities() -> None:
    error = topic_errors.replaced(replace(ORDERS, id="new"), "old", *topic_errors.OPEN)
    assert "the identity that was meant is old, the one found is new" in (error.detail or "")
    group = topic_errors.replaced_for("mail", replace(ORDERS, id="new"), "old")
    assert 'what group "mail" has committed' in group.message
    assert "headwater seek mail orders --to earliest" in (group.hint or "")


def test_how_values_and_keys_are_written_is_said_in_words() -> None:
    keyed = replace(ORDERS, format="avro", key_format="text")
    assert topic_errors.formats_text(ORDERS) == "its values are json"
    assert topic_errors.formats_text(keyed) == "its values are avro, its keys text"


def test_a_topic_in_two_ways_is_named() -> None:
    assert 'topic "orders" is declared in two ways' in topic_errors.two_declarations(ORDERS).message
