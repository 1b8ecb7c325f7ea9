"""What is wrong with a declaration in itself: refused at once, with the user's own line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.pipeline.test_pipeline import ORDERS, declared

from headwater import Pipeline
from headwater.errors import PipelineError

Refuse = Callable[..., PipelineError]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Run the lines of a file ``shop.py`` and return the error that they raise."""
    monkeypatch.chdir(tmp_path)

    def run(*lines: str) -> PipelineError:
        with pytest.raises(PipelineError) as caught:
            declared(*lines)
        return caught.value

    return run


def test_a_misspelt_key_is_told_with_its_place_and_what_may_be_meant(refused: Refuse) -> None:
    error = refused('shop.source("orders", "id BIGINT, amount DOUBLE", key="amuont")')
    assert (error.message, error.location) == ('source "orders" has no column "amuont"', "shop.py:2")
    assert str(error) == (
        'source "orders" has no column "amuont"\ndetail: shop.py:2\nhint: did you mean "amount"?'
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'shop.source("page-views", "n INT")',
            'invalid source name "page-views"\ndetail: shop.py:2\nhint: it becomes the parameter of '
            'functions: use letters, digits and _, and topic="page-views" if that is what the log has',
        ),
        ('shop.source("class", "n INT")', 'invalid source name "class"\ndetail: shop.py:2\nhint: it becomes'),
        ('shop.source(5, "n INT")', 'invalid source name "5"\ndetail: shop.py:2\n'),
        ('shop.source("clicks", "n INT", topic="a b")', 'invalid topic name "a b"\ndetail: shop.py:2\n'),
        ('shop.source("clicks", "n INT", topic="")', 'invalid topic name ""\ndetail: shop.py:2\n'),
        (
            'shop.source("clicks", "n BIGNIT")',
            'column "n" has an unknown type "BIGNIT"\ndetail: shop.py:2\nhint: did you mean "BIGINT"?',
        ),
        (
            'shop.source("clicks", "n")',
            'invalid schema "n"\ndetail: shop.py:2: a type for column "n" expected',
        ),
        ('shop.source("clicks", 5)', "a schema cannot be a int\ndetail: shop.py:2\n"),
        ('shop.source("clicks", "_offset INT")', 'column name "_offset" is reserved\ndetail: shop.py:2\n'),
        (
            'shop.source("clicks", "n INT, at TIMESTAMP", event_time="att")',
            'source "clicks" has no column "att"\ndetail: shop.py:2\nhint: did you mean "at"?',
        ),
        (
            'shop.source("clicks", "n INT", event_time="at")',
            'source "clicks" has no column "at"\ndetail: shop.py:2\nhint: its columns: n',
        ),
        (
            'shop.source("clicks", "n INT", event_time="n")',
            'event-time column "n" is not a TIMESTAMP\ndetail: shop.py:2',
        ),
        (
            'shop.source("clicks", "n INT", lateness="1 minute")',
            'source "clicks" has lateness but no event_time\ndetail: shop.py:2\nhint: name its TIMESTAMP',
        ),
        ('shop.source("clicks", "n INT", idle="1 minute")', 'source "clicks" has idle but no event_time\n'),
        (
            'shop.source("clicks", "n INT", max_ahead="1 minute")',
            'source "clicks" has max_ahead but no event_time\n',
        ),
        (
            'shop.source("clicks", "at TIMESTAMP", event_time="at", max_ahead="0 seconds")',
            'interval "0 seconds" is not a positive length of time\ndetail: shop.py:2',
        ),
        (
            'shop.source("clicks", "at TIMESTAMP", event_time="at", lateness="10m")',
            'invalid interval "10m"\ndetail: shop.py:2\nhint: write a number and a unit',
        ),
        (
            'shop.source("clicks", "at TIMESTAMP", event_time="at", lateness=5)',
            'invalid interval "5"\ndetail: shop.py:2\n',
        ),
        (
            'shop.source("clicks", "at TIMESTAMP", event_time="at", idle="0 seconds")',
            'interval "0 seconds" is not a positive length of time\ndetail: shop.py:2',
        ),
        ('shop.source("clicks", "n INT", key=5)', 'key of source "clicks" cannot be 5\ndetail: shop.py:2\n'),
        ('shop.source("clicks", "n INT", key="n,")', "key of source \"clicks\" cannot be 'n,'\n"),
        ('shop.source("clicks", "n INT", key="n,n")', 'key of source "clicks" has a column twice\n'),
        (
            'shop.source("clicks", "n DOUBLE", key="n")',
            'column "n" cannot be a key\ndetail: shop.py:2: DOUBLE',
        ),
        (
            'shop.table("customers", "id BIGINT")',
            'table "customers" has no key\ndetail: shop.py:2\nhint: name the column(s) that',
        ),
        ('shop.table("customers", "id BIGINT", key=[])', 'table "customers" has no key\n'),
        (
            'shop.table("customers", "id BIGINT", key="idd")',
            'table "customers" has no column "idd"\ndetail: shop.py:2\nhint: did you mean "id"?',
        ),
        (
            "@shop.view()\ndef seen(orders): ...",
            'view "seen" has no key\ndetail: shop.py:2\nhint: name the column(s)',
        ),
        (
            '@shop.view(key="id")\ndef seen(): ...',
            'view "seen" has no upstream\ndetail: shop.py:2\nhint: name what it reads as its parameters',
        ),
        (
            '@shop.view(key="id")\ndef seen(orders, *others): ...',
            'view "seen" takes "*others", which names no upstream\ndetail: shop.py:2\nhint: name every',
        ),
        (
            "@shop.stream()\ndef seen(orders, **others: int): ...",
            'stream "seen" takes "**others", which names no upstream\ndetail: shop.py:2\n',
        ),
        (
            "@shop.stream()\ndef seen(orders, /): ...",
            'stream "seen" takes "orders" by position only\ndetail: shop.py:2\nhint: upstreams are handed',
        ),
        (
            "@shop.stream()\ndef seen(orders, least=5): ...",
            'stream "seen" has a default for parameter "least"\ndetail: shop.py:2\nhint: a parameter is an',
        ),
        (
            '@shop.stream(on_error="dead_leter")\ndef seen(orders): ...',
            'stream "seen" has an unknown on_error "dead_leter"\ndetail: shop.py:2\n'
            'hint: did you mean "dead_letter"?',
        ),
        (
            "@shop.stream(on_error=None)\ndef seen(orders): ...",
            'stream "seen" has an unknown on_error "None"\ndetail: shop.py:2\nhint: use "stop" or "dead',
        ),
        (
            "@shop.stream(partitions=0)\ndef seen(orders): ...",
            'stream "seen" has 1 to 1024 partitions, not 0\ndetail: shop.py:2',
        ),
        (
            "@shop.stream(partitions=True)\ndef seen(orders): ...",
            'stream "seen" has 1 to 1024 partitions, not T',
        ),
        ("@shop.stream(event_time=5)\ndef seen(orders): ...", 'event_time of stream "seen" cannot be 5\n'),
        ("shop.stream()(lambda orders: orders)", 'invalid stream name "<lambda>"\ndetail: shop.py:2\n'),
        (
            "shop.stream()(print)",
            "a node is a function, not a builtin_function_or_method\ndetail: shop.py:2\n",
        ),
        (
            "@shop.sink\ndef sent(orders): ...",
            "a sink has no target\ndetail: shop.py:2\nhint: name where its rows go, as in @shop.sink(target)",
        ),
        ("shop.sink(None)", "a sink has no target\ndetail: shop.py:2\n"),
        ('shop.sql("seen", "SELECT 1 FROM orders")', 'view "seen" has no key\ndetail: shop.py:2\n'),
        (
            'shop.sql("seen", "SELECT 1 FROM orders", kind="veiw")',
            'kind is "view" or "stream", not "veiw"\ndetail: shop.py:2\nhint: did you mean "view"?',
        ),
        (
            'shop.sql("seen", "DELETE FROM orders", key="id")',
            'view "seen" is not a query\ndetail: shop.py:2: DELETE FROM orders\nhint: write one statement',
        ),
        ('shop.sql("seen", None, key="id")', 'view "seen" is not a query\ndetail: shop.py:2: None\n'),
        ('shop.sql("my view", "SELECT 1 FROM orders", key="id")', 'invalid view name "my view"\n'),
        (
            'shop.sql("seen", "SELECT 1 FROM orders", key="id", partitions=3)',
            'view "seen" takes no partitions\ndetail: shop.py:2\nhint: only a stream has one',
        ),
        (
            'shop.sql("seen", "SELECT 1 FROM orders", kind="stream", store="x")',
            'stream "seen" takes no store\ndetail: shop.py:2\nhint: only a view has one',
        ),
        ('Pipeline("my shop")', 'invalid pipeline name "my shop"\ndetail: shop.py:2\nhint: use letters'),
        (
            'Pipeline("shop", "./data")',
            'invalid log URL "./data"\ndetail: shop.py:2\nhint: use "file:./data"',
        ),
        ('Pipeline("shop", 5)', 'invalid log URL "5"\ndetail: shop.py:2\n'),
        ('Pipeline("s" * 198).stream()(len2)', 'invalid topic name "sss'),
    ],
)
def test_what_is_wrong_in_itself_is_refused_where_it_is_declared(
    refused: Refuse, line: str, said: str
) -> None:
    if "len2" in line:
        line = "def len2(orders): ...\n" + line
    assert str(refused(line)).startswith(said)


def test_a_name_is_refused_the_second_time_with_both_places(refused: Refuse) -> None:
    assert str(refused(ORDERS, '@shop.view(key="id")\ndef orders(clicks): ...')) == (
        'view "orders" has the name of source "orders"\n'
        'detail: shop.py:4: "orders" is declared at shop.py:2\n'
        "hint: give one of them another name"
    )


def test_a_name_that_differs_in_capitals_only_is_taken(refused: Refuse) -> None:
    error = refused(ORDERS, 'shop.table("Orders", "id INT", key="id")')
    assert error.message == 'table "Orders" has the name of source "orders"'


@pytest.mark.parametrize("backwards", [False, True])
def test_a_stream_may_not_write_to_a_topic_that_is_read(refused: Refuse, backwards: bool) -> None:
    source = 'shop.source("seen_before", "n INT", topic="shop.seen")'
    stream = "shop.sql('seen', 'SELECT * FROM orders', kind='stream')"
    lines = [stream, source] if backwards else [source, stream]
    first, second = (
        ('source "seen_before"', 'stream "seen"') if backwards else ('stream "seen"', 'source "seen_before"')
    )
    assert str(refused(*lines)).startswith(
        f'{first} has the topic of {second}\ndetail: shop.py:3: topic "shop.seen" is used at shop.py:2\n'
    )


@pytest.mark.parametrize(("name", "rows"), [("late", "late rows"), ("dead", "dead letters")])
def test_a_stream_may_not_write_where_another_pipeline_would_set_rows_aside(name: str, rows: str) -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline("shop.orders").sql(name, "SELECT * FROM clicks", kind="stream")
    error = caught.value
    assert error.detail is not None
    assert error.message == f'stream "{name}" cannot have the topic "shop.orders.{name}"'
    assert error.detail.endswith(
        f': that is the topic for the {rows} of node "orders" of a pipeline named "shop"'
    )
    assert error.hint == "give the stream or its pipeline another name"


@pytest.mark.parametrize(
    ("pipeline", "kind"), [("shop", "stream"), ("shop.v-2", "stream"), ("shop.orders", "view")]
)
def test_late_is_a_name_like_others_where_no_node_sets_rows_aside_there(pipeline: str, kind: str) -> None:
    key = "id" if kind == "view" else None
    assert Pipeline(pipeline).sql("late", "SELECT * FROM clicks", kind=kind, key=key).name == "late"


@pytest.mark.parametrize("declare", ["source", "table"])
def test_a_format_is_kept_with_its_topic_and_needs_a_broker(declare: str) -> None:
    settings = {"key": "id", "format": "csv", "key_format": "json"}
    made = getattr(Pipeline("shop", log="kafka://host:9092"), declare)("orders", "id INT, n INT", **settings)
    assert (made.declared.format, made.declared.key_format) == ("csv", "json")
    with pytest.raises(PipelineError, match=f'{declare} "orders" cannot have format="csv"') as refused:
        getattr(Pipeline("shop"), declare)("orders", "id INT, n INT", **settings)
    assert str(refused.value.detail).startswith("tests/unit/pipeline/test_declaring.py:")
    with pytest.raises(PipelineError, match='needs one STRING column for format "text"'):
        getattr(Pipeline("shop", log="kafka://host"), declare)("o", "id INT, n INT", key="id", format="text")
