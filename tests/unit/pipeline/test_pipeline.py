"""Declarations: what is kept of them, and where the user wrote them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import Pipeline, schema
from headwater.errors import PipelineError
from headwater.pipeline.node import Node, SinkNode, StreamNode, ViewNode
from headwater.pipeline.pipeline import Source, Table

Declare = Callable[..., Pipeline]

ORDERS = 'shop.source("orders", "id BIGINT, amount DOUBLE, at TIMESTAMP", key="id")\n'


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Run the lines of a file ``shop.py``, the first of which makes the pipeline."""
    monkeypatch.chdir(tmp_path)
    return declared


def declared(*lines: str) -> Pipeline:
    text = "\n".join(['shop = Pipeline("shop")', *lines])
    names: dict[str, Any] = {"Pipeline": Pipeline}
    exec(compile(text, "shop.py", "exec", dont_inherit=True), names)
    pipeline: Pipeline = names["shop"]
    return pipeline


def test_a_source_keeps_what_was_declared() -> None:
    shop = Pipeline("shop")
    made = shop.source(
        "clicks",
        "url STRING, at TIMESTAMP",
        event_time="at",
        lateness="10 minutes",
        idle="1 second",
        max_ahead="1 hour",
        key="url",
    )
    assert made is shop["clicks"]
    assert shop.sources == (made,)
    assert isinstance(made, Source)
    assert (made.kind, made.topic, made.key, made.event_time) == ("source", "clicks", ("url",), "at")
    assert (made.timing.lateness, made.timing.idle) == (timedelta(minutes=10), timedelta(seconds=1))
    assert made.timing.max_ahead == timedelta(hours=1)
    assert made.schema.equals(schema.parse("url STRING, at TIMESTAMP"))


def test_how_long_the_silent_are_waited_for_is_said_or_not() -> None:
    made = Pipeline("shop").source("clicks", "at TIMESTAMP", event_time="at")
    assert (made.timing.lateness, made.timing.idle) == (timedelta(), None)
    table = Pipeline("shop").table(
        "rates", "k STRING, at TIMESTAMP", key="k", event_time="at", lateness="1 minute", idle="1 hour"
    )
    assert (table.timing.lateness, table.timing.idle) == (timedelta(minutes=1), timedelta(hours=1))
    with pytest.raises(PipelineError, match='table "rates" has idle but no event_time'):
        Pipeline("shop").table("rates", "k STRING", key="k", idle="1 hour")


@pytest.mark.parametrize(
    "zero", ["0 seconds", "0 minutes", "interval 0 days", "0 hours 0 seconds", timedelta()]
)
def test_lateness_may_be_zero(zero: Any) -> None:
    made = Pipeline("shop").source("clicks", "at TIMESTAMP", event_time="at", lateness=zero)
    assert made.timing.lateness == timedelta()


def test_a_topic_may_have_another_name_and_an_arrow_schema() -> None:
    made = Pipeline("shop").source("clicks", pa.schema([("n", pa.int64())]), topic="web.clicks-2")
    assert (made.topic, made.schema.names) == ("web.clicks-2", ["n"])


def test_a_table_keeps_what_was_declared() -> None:
    shop = Pipeline("shop")
    made = shop.table(
        "prices", "sku STRING, day DATE, price DOUBLE, at TIMESTAMP", key="sku, day", event_time="at"
    )
    assert shop.tables == (made,)
    assert isinstance(made, Table)
    assert (made.kind, made.topic, made.key, made.event_time) == ("table", "prices", ("sku", "day"), "at")


def test_a_decorated_function_is_returned_unchanged() -> None:
    shop = Pipeline("shop")

    def visits(clicks: Any) -> Any:
        return ["called with", clicks]

    assert shop.stream()(visits) is visits
    assert visits("x") == ["called with", "x"]


def test_a_node_is_what_its_function_says() -> None:
    shop = Pipeline("shop")

    @shop.stream(key=["session"], event_time="at", partitions=4, on_error="dead_letter")
    def visits(clicks: Any, customers: Any) -> Any:
        """Each visit.

        With its customer.
        """

    [made] = shop.nodes
    assert isinstance(made, StreamNode)
    assert (made.name, made.kind, made.topic) == ("visits", "stream", "shop.visits")
    assert made.upstreams == ("clicks", "customers")
    assert made.description == "Each visit.\n\nWith its customer."
    assert (made.key, made.event_time, made.partitions) == (("session",), "at", 4)
    assert (made.on_error, made.code.function) == ("dead_letter", visits)


def test_a_view_and_a_sink_have_no_topic() -> None:
    shop, target = Pipeline("shop"), object()

    @shop.view(key="id", store="postgres://db/views")
    def seen(clicks: Any) -> None: ...

    @shop.sink(target, on_error="dead_letter")
    def sent(clicks: Any) -> None: ...

    view, sink = shop.nodes
    assert isinstance(view, ViewNode) and isinstance(sink, SinkNode)
    assert (view.kind, view.store, view.key) == ("view", "postgres://db/views", ("id",))
    assert (sink.kind, sink.target, sink.on_error) == ("sink", target, "dead_letter")
    assert view.readable_topic is view.written_topic is sink.readable_topic is sink.written_topic is None


def test_each_declaration_knows_its_file_and_line(declare: Declare, tmp_path: Path) -> None:
    shop = declare(
        ORDERS,
        "",
        "@shop.view(",
        '    key="id",',
        ")",
        "def seen(orders): ...",
        'shop.sql("also_seen", "SELECT * FROM orders", key="id")',
    )
    assert [shop[name].location for name in ("orders", "seen", "also_seen")] == [
        "shop.py:2",
        "shop.py:5",
        "shop.py:9",
    ]
    assert (shop["seen"].file, shop["seen"].line) == (str(tmp_path / "shop.py"), 5)
    assert (shop.file, shop.line) == (str(tmp_path / "shop.py"), 1)


def test_a_place_elsewhere_is_named_in_full(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = declare(ORDERS)
    monkeypatch.chdir("/")
    assert shop["orders"].location.endswith("/shop.py:2")
    (elsewhere := Path(shop.file).parent / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert shop["orders"].location == f"{shop.file}:2"


def test_a_users_own_decorator_does_not_hide_the_function() -> None:
    shop = Pipeline("shop")

    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @shop.view(key="id")
    @traced
    def seen(clicks: Any) -> None:
        """What was seen."""

    [made] = shop.nodes
    assert (made.name, made.upstreams, made.description) == ("seen", ("clicks",), "What was seen.")
    assert (made.code.function, made.file) == (seen, __file__)


def test_a_declaration_cannot_be_changed() -> None:
    made = Pipeline("shop").source("clicks", "n INT")
    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("log", "home"),
    [
        ("file:./data", "data/pipelines/shop"),
        ("file:///srv/log", "/srv/log/pipelines/shop"),
        ("kafka://broker:9092", "headwater-shop"),
        ("memory:", "headwater-shop"),
    ],
)
def test_home_is_next_to_the_log_where_that_is_a_directory(log: str, home: str) -> None:
    assert Pipeline("shop", log).home == Path(home).absolute()


def test_home_and_views_may_be_elsewhere() -> None:
    shop = Pipeline("shop", home="/srv/shop", views="postgres://db")
    assert (shop.home, shop.views) == (Path("/srv/shop"), "postgres://db")


def test_a_relative_place_is_that_of_when_the_pipeline_was_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop, elsewhere = Pipeline("shop", "file:./data"), Pipeline("shop", "kafka://broker:9092", home="own")
    monkeypatch.chdir("/")
    assert shop.log == f"file:{tmp_path / 'data'}"
    assert shop.home == tmp_path / "data" / "pipelines" / "shop"
    assert (elsewhere.log, elsewhere.home) == ("kafka://broker:9092", tmp_path / "own")


def test_a_query_is_a_node_too() -> None:
    shop = Pipeline("shop")
    shop.source("orders", "id BIGINT")
    view = shop.sql(
        "all_orders", "SELECT * FROM orders", key="id", store="postgresql://db/x", on_error="dead_letter"
    )
    stream = shop.sql("ids", "SELECT id FROM orders", kind="stream", key="id", event_time="at", partitions=2)
    assert isinstance(view, ViewNode) and isinstance(stream, StreamNode)
    assert (view.kind, view.store, view.on_error, view.readable_topic) == (
        "view",
        "postgresql://db/x",
        "dead_letter",
        None,
    )
    assert (stream.kind, stream.topic, stream.event_time, stream.partitions) == (
        "stream",
        "shop.ids",
        "at",
        2,
    )
    assert [node.upstreams for node in shop.nodes] == [("orders",), ("orders",)]
    assert (stream.code.function, stream.code.statement) == (None, "SELECT id FROM orders")


@pytest.mark.parametrize("declaration", ["source", "table", "stream", "view", "sink", "sql"])
def test_no_declaration_takes_more_options_than_one_can_keep_in_mind(declaration: str) -> None:
    parameters = inspect.signature(getattr(Pipeline, declaration)).parameters.values()
    most = {"source": 14, "table": 10}.get(declaration, 6)  # of a topic of others there is much to say
    assert sum(each.kind is each.KEYWORD_ONLY for each in parameters) <= most


def test_a_pipeline_tells_its_name_and_size() -> None:
    assert repr(Pipeline("shop")) == "<pipeline shop: 0 nodes>"


def test_nodes_are_of_type_node() -> None:
    made = Pipeline("shop").sql("seen", "SELECT 1 FROM orders", key="id")
    assert isinstance(made, Node)


def test_a_home_in_an_object_store_has_a_copy_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shop = Pipeline("shop", home="s3://bucket/shop")
    assert shop.home_store == "s3://bucket/shop"
    assert shop.home.parent == tmp_path / "headwater" / "homes"
    assert Pipeline("shop", home=tmp_path).home_store is None
    with pytest.raises(PipelineError, match="is no address of a pipeline's home"):
        Pipeline("shop", home="hdfs://server/shop")
