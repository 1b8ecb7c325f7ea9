"""What a pipeline captures, as it is declared."""

from __future__ import annotations

import pytest

from headwater import Pipeline
from headwater.errors import PipelineError

COLUMNS = "id BIGINT, name STRING, at TIMESTAMP"


@pytest.fixture
def shop() -> Pipeline:
    declared = Pipeline("shop")
    declared.capture("crm", "sqlite:./crm.db")
    return declared


def test_a_captured_table_has_the_time_of_the_commit(shop: Pipeline) -> None:
    table = shop.table(
        "customers", "id BIGINT, name STRING", key="id", captured="crm.sales.customers", history=True
    )
    assert (table.event_time, table.schema.names) == ("committed_at", ["id", "name", "committed_at"])
    assert table.captured is not None
    assert (table.captured.capture, table.captured.table, table.captured.history) == (
        "crm",
        "sales.customers",
        True,
    )
    assert [part.name for part in shop.captures] == ["crm"]
    assert shop.problems() == []


def test_a_column_may_be_its_event_time(shop: Pipeline) -> None:
    table = shop.table("customers", COLUMNS, key="id", event_time="at", captured="crm.customers")
    assert (table.event_time, table.schema.names) == ("at", ["id", "name", "at"])


def test_a_capture_does_not_show_its_url(shop: Pipeline) -> None:
    declared = shop.capture("erp", "postgresql://shop:secret@db/erp")
    assert "secret" not in repr(declared)


def test_a_table_of_no_capture_is_a_problem(shop: Pipeline) -> None:
    shop.table("customers", COLUMNS, key="id", captured="crn.customers")
    shop.table("orders", "id BIGINT", key="id", captured="crm.orders")
    shop.table("sales", "id BIGINT", key="id", captured="crm.orders")
    assert [problem.message for problem in shop.problems()] == [
        'table "customers" follows no capture "crn"',
        'table "sales" captures the table of table "orders"',
    ]
    assert 'did you mean "crm"?' in str(shop.problems()[0])


def test_a_node_cannot_read_a_capture(shop: Pipeline) -> None:
    @shop.view(key="id")
    def all_of_it(crm: object) -> object:
        return crm

    [problem] = shop.problems()
    assert problem.message == 'view "all_of_it" cannot read capture "crm"'
    assert 'captured="crm.TABLE"' in str(problem.hint)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"captured": "crm"}, "captured of table"),
        ({"captured": 3}, "captured of table"),
        ({"captured": "crm."}, "captured of table"),
        ({"history": True}, "has history, and is not captured"),
    ],
)
def test_settings_that_say_nothing_are_refused(
    shop: Pipeline, settings: dict[str, object], told: str
) -> None:
    with pytest.raises(PipelineError, match=told):
        shop.table("customers", "id BIGINT", key="id", **settings)  # type: ignore[arg-type]


def test_the_name_of_the_commit_time_is_taken(shop: Pipeline) -> None:
    with pytest.raises(PipelineError, match="is the time of the commit"):
        shop.table("customers", "id BIGINT, committed_at TIMESTAMP", key="id", captured="crm.customers")


@pytest.mark.parametrize("url", ["oracle:scott", "", 7, "file:./data"])
def test_a_url_of_no_database_is_refused(url: object) -> None:
    with pytest.raises(PipelineError, match="no database"):
        Pipeline("shop").capture("crm", url)  # type: ignore[arg-type]


def test_settings_with_a_password_are_not_shown() -> None:
    with pytest.raises(PipelineError, match="no database that can be captured") as refused:
        Pipeline("shop").capture("crm", "host=db password=se:cret")
    assert "password" not in str(refused.value)


def test_an_unknown_on_error_is_refused() -> None:
    with pytest.raises(PipelineError, match='unknown on_error "skip"'):
        Pipeline("shop").capture("crm", "sqlite:crm.db", on_error="skip")  # type: ignore[arg-type]


def test_a_source_is_captured_from_an_outbox(shop: Pipeline) -> None:
    orders = shop.source(
        "orders",
        "id BIGINT, item STRING",
        key="id",
        captured="crm.sales.outbox",
        event="payload",
        headers="trace_id, kind",
        delete=True,
    )
    assert (orders.event_time, orders.schema.names) == ("committed_at", ["id", "item", "committed_at"])
    assert (orders.compacted, orders.upstreams) == (False, ("crm",))
    origin = orders.captured
    assert origin is not None
    assert (origin.capture, origin.table, origin.event) == ("crm", "sales.outbox", "payload")
    assert (origin.headers, origin.delete) == (("trace_id", "kind"), True)
    assert shop.problems() == []


def test_the_event_time_of_an_outbox_may_be_computed(shop: Pipeline) -> None:
    orders = shop.source(
        "orders", "id BIGINT, at BIGINT", event_time="timestamp_millis(at)", captured="crm.outbox"
    )
    assert (orders.event_time, orders.schema.names) == ("event_time", ["id", "at"])


def test_one_outbox_is_of_one_source(shop: Pipeline) -> None:
    shop.source("orders", "id BIGINT", captured="crm.outbox")
    shop.table("sales", "id BIGINT", key="id", captured="crm.outbox")
    shop.source("more", "id BIGINT", captured="crn.outbox")
    assert [problem.message for problem in shop.problems()] == [
        'source "more" follows no capture "crn"',
        'table "sales" captures the table of source "orders"',
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"event": "payload"}, "settings of an outbox, and is not captured"),
        ({"headers": ["kind"]}, "settings of an outbox, and is not captured"),
        ({"delete": True}, "settings of an outbox, and is not captured"),
        ({"captured": "crm"}, "captured of source"),
        ({"captured": "crm.outbox", "event": 7}, "event of source"),
        ({"captured": "crm.outbox", "event": ""}, "event of source"),
        ({"captured": "crm.outbox", "headers": ["kind", "kind"]}, "headers of source"),
        ({"captured": "crm.outbox", "headers": ["row"]}, "is one that every captured event has"),
    ],
)
def test_settings_of_an_outbox_that_say_nothing_are_refused(
    shop: Pipeline, settings: dict[str, object], told: str
) -> None:
    with pytest.raises(PipelineError, match=told):
        shop.source("orders", "id BIGINT", **settings)  # type: ignore[arg-type]


def test_an_outbox_has_no_format() -> None:
    shop = Pipeline("shop", log="kafka://localhost:9092")
    with pytest.raises(PipelineError, match="is captured, so it has no format"):
        shop.source("orders", "id BIGINT", captured="crm.outbox", format="avro")
