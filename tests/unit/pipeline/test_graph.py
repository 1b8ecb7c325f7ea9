"""What needs the whole pipeline: upstreams that are there, no cycles, and an order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import Pipeline
from headwater.errors import PipelineError

Edges = dict[str, list[str]]
"""For each node the names that it reads; ``s`` is a source."""


@pytest.fixture
def shop(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline, declared in a file ``shop.py``, that has nothing wrong."""
    monkeypatch.chdir(str(tmp_path))
    text = """
shop = Pipeline("shop")

@shop.view(key="id")
def rich_orders(big_orders, customers): ...

@shop.stream()
def big_orders(orders): ...

@shop.sink(object())
def sent(big_orders): ...

shop.source("orders", "id BIGINT", topic="web.orders")
shop.table("customers", "id BIGINT", key="id")
shop.source("unused", "n INT")
"""
    return run(text)


def run(text: str) -> Pipeline:
    names = {"Pipeline": Pipeline}
    exec(compile(text, "shop.py", "exec", dont_inherit=True), names)
    return names["shop"]  # type: ignore[return-value]


def names(declared: object) -> list[str]:
    return [each.name for each in declared]  # type: ignore[attr-defined]


def test_declarations_may_come_in_any_order(shop: Pipeline) -> None:
    shop.check()
    assert shop.problems() == []
    assert names(shop.order()) == ["big_orders", "rich_orders", "sent"]


def test_upstream_and_downstream_reach_near_and_far(shop: Pipeline) -> None:
    assert names(shop.upstream("rich_orders")) == ["customers", "orders", "big_orders"]
    assert names(shop.downstream("orders")) == ["big_orders", "rich_orders", "sent"]
    assert names(shop.downstream("customers")) == ["rich_orders"]
    assert names(shop.upstream("orders")) == names(shop.downstream("unused")) == []


def test_inputs_are_topics(shop: Pipeline) -> None:
    assert shop.inputs("rich_orders") == ("shop.big_orders", "customers")
    assert shop.inputs(shop.nodes[1]) == ("web.orders",)
    assert shop.inputs("orders") == ()


def test_a_misspelt_upstream_is_told_with_its_place_and_the_nearest_name(shop: Pipeline) -> None:
    shop = run(
        'shop = Pipeline("shop")\n'
        'shop.table("customers", "id BIGINT", key="id")\n'
        '@shop.view(key="id")\n'
        "def rich_orders(custommers): ...\n"
    )
    with pytest.raises(PipelineError) as caught:
        shop.check()
    assert caught.value.location == "shop.py:3"
    assert str(caught.value) == (
        'view "rich_orders" has no upstream "custommers"\ndetail: shop.py:3\nhint: did you mean "customers"?'
    )


def test_where_no_name_is_near_all_are_told(shop: Pipeline) -> None:
    shop.sql("seen", "SELECT * FROM xyz", key="id")
    [problem] = shop.problems()
    assert problem.message == 'view "seen" has no upstream "xyz"'
    assert problem.hint == "declared are: rich_orders, big_orders, sent, orders, customers, unused, seen"


def test_all_problems_are_listed_and_the_first_is_raised(shop: Pipeline) -> None:
    shop.sql("first", "SELECT * FROM a JOIN b", key="id")
    shop.sql("second", "SELECT 1", key="id")
    shop.sql("third", "SELECT * FROM rich_orders", key="id")
    shop.sql("fourth", "SELECT * FROM fourth", kind="stream")
    assert [problem.message for problem in shop.problems()] == [
        'view "first" has no upstream "a"',
        'view "first" has no upstream "b"',
        'view "second" has no upstream',
        'view "third" cannot read view "rich_orders"',
        'pipeline "shop" has a cycle: fourth → fourth',
    ]
    with pytest.raises(PipelineError, match='has no upstream "a"'):
        shop.check()
    with pytest.raises(PipelineError, match='has no upstream "a"'):
        shop.order()


def test_what_has_no_topic_cannot_be_read(shop: Pipeline) -> None:
    shop.sql("of_a_sink", "SELECT * FROM sent", key="id")
    shop.sql("of_a_view", "SELECT * FROM rich_orders", key="id")
    sink, view = shop.problems()
    assert sink.message == 'view "of_a_sink" cannot read sink "sent"'
    assert sink.hint == 'make "sent" a stream'
    assert view.detail is not None and view.detail.endswith(": a view has no topic of its own")
    assert view.hint == 'make "rich_orders" a stream, and let a view of another name read it too'


def test_a_cycle_is_told_with_its_path_and_every_place(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    shop = run(
        'shop = Pipeline("shop")\n'
        'shop.source("orders", "n INT")\n'
        "@shop.stream()\n"
        "def a(orders, c): ...\n"
        "@shop.stream()\n"
        "def b(a): ...\n"
        "@shop.stream()\n"
        "def c(b): ...\n"
    )
    [problem] = shop.problems()
    assert str(problem) == (
        'pipeline "shop" has a cycle: a → b → c → a\n'
        'detail: shop.py:5: "b" reads "a"; shop.py:7: "c" reads "b"; shop.py:3: "a" reads "c"\n'
        "hint: let one of them read what the others are made of"
    )


def test_sql_does_not_mind_capitals(shop: Pipeline) -> None:
    shop.sql("seen", "select * from Orders join `BIG_ORDERS` using (id) join orders o2 using (id)", key="id")
    assert shop["seen"].upstreams == ("orders", "big_orders")  # type: ignore[attr-defined]


def pipeline(edges: Edges) -> Pipeline:
    made = Pipeline("random")
    for name, read in edges.items():
        made.sql(name, f"SELECT * FROM {', '.join(read)}", kind="stream")  # noqa: S608
    made.source("s", "n INT")
    return made


@st.composite
def acyclic(draw: st.DrawFn) -> Edges:
    """Draw nodes that read earlier ones, or the source, declared in any order."""
    known, edges = ["s"], {}
    for number in range(draw(st.integers(0, 8))):
        edges[f"n{number}"] = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
        known.append(f"n{number}")
    return {name: edges[name] for name in draw(st.permutations(list(edges)))}


@st.composite
def tangled(draw: st.DrawFn) -> Edges:
    """Draw nodes that read any others."""
    known = ["s", *(f"n{number}" for number in range(draw(st.integers(1, 7))))]
    reads = st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True)
    return {name: draw(reads) for name in known[1:]}


def has_cycle(edges: Edges) -> bool:
    """Tell whether some name can be reached from itself, by walking."""
    reached = {name: set(read) for name, read in edges.items()}
    for _ in edges:
        reached = {
            name: far.union(*(reached.get(each, set()) for each in far)) for name, far in reached.items()
        }
    return any(name in far for name, far in reached.items())


@given(acyclic())
def test_everything_comes_after_what_it_reads(edges: Edges) -> None:
    made = pipeline(edges)
    order = ["s", *names(made.order())]
    assert sorted(order) == sorted(["s", *edges])
    for name, read in edges.items():
        assert all(order.index(each) < order.index(name) for each in read)


@given(acyclic())
def test_downstream_is_upstream_the_other_way_round(edges: Edges) -> None:
    made = pipeline(edges)
    for name in edges:
        for far in made.upstream(name):
            assert name in names(made.downstream(far.name))
        for far in made.downstream(name):
            assert name in names(made.upstream(far.name))


@given(tangled())
def test_a_cycle_is_found_exactly_where_there_is_one(edges: Edges) -> None:
    problems = pipeline(edges).problems()
    assert bool(problems) == has_cycle(edges)
    for problem in problems:
        path = problem.message.partition("cycle: ")[2].split(" → ")
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1
        assert all(before in edges[after] for before, after in pairwise(path))


def test_a_long_chain_is_no_trouble() -> None:
    edges = {f"n{number}": [f"n{number - 1}" if number else "s"] for number in range(2000)}
    assert len(pipeline(edges).order()) == 2000
