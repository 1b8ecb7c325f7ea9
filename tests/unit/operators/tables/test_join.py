"""Joins of tables against an oracle that joins both tables anew, with two loops, after each step."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import NEVER
from headwater.operators.pairing import Pairing
from headwater.operators.spec import Side
from headwater.operators.tables.join import TableJoin
from headwater.schema import parse
from headwater.transforms.joins import tables
from soaking import examples
from unit.operators.bucketed import SCALES
from unit.operators.stepping import SPILLED, Row, TablesInMemory, listed, table
from unit.operators.tables.tabling import (
    Key,
    Made,
    batch,
    change,
    changes_of,
    check_rescaled,
    gone,
    in_buckets,
    key_of,
    play,
    sender,
    told,
    turns,
)

LEFT = parse("id BIGINT, part STRING, x DOUBLE, ref BIGINT, note STRING, _deleted BOOLEAN")
RIGHT = parse("rid BIGINT, part STRING, y DOUBLE, code BIGINT, note STRING, _deleted BOOLEAN")
VALUES: list[dict[str, list[Any]]] = [
    {
        "id": [1, 2, 3],
        "part": ["a", "b"],
        "x": [None, 0.0, -0.0, math.nan],
        "ref": [None, 1, 2],
        "note": ["p", "q"],
    },
    {
        "rid": [1, 2, 3],
        "part": ["a", "b"],
        "y": [None, 0.0, math.nan],
        "code": [None, 1, 2],
        "note": ["r", None],
    },
]

Spec = tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...], str]
SPECS: dict[str, Spec] = {
    "many to many": ((("ref", "code"),), ("id",), ("rid",), "inner"),
    "many to many by doubles": ((("x", "y"),), ("id",), ("rid",), "inner"),
    "by two columns": ((("ref", "code"), ("part", "part")), ("id", "part"), ("rid",), "inner"),
    "by a part of both keys": ((("ref", "code"), ("part", "part")), ("part", "id"), ("part", "rid"), "inner"),
    "foreign key": ((("ref", "rid"),), ("id",), ("rid",), "inner"),
    "foreign key, left": ((("ref", "rid"),), ("id",), ("rid",), "left"),
    "a part of a foreign key": ((("ref", "rid"),), ("id",), ("rid", "part"), "inner"),
    "foreign key of the right": ((("id", "code"),), ("id",), ("rid",), "right"),
    "foreign key of the right, inner": ((("id", "code"),), ("id",), ("rid",), "inner"),
    "primary keys": ((("id", "rid"),), ("id",), ("rid",), "inner"),
    "primary keys, left": ((("id", "rid"),), ("id",), ("rid",), "left"),
    "primary keys, right": ((("id", "rid"),), ("id",), ("rid",), "right"),
    "primary keys, full": ((("id", "rid"),), ("id",), ("rid",), "full"),
    "primary keys and more, left": ((("id", "rid"), ("x", "y")), ("id",), ("rid",), "left"),
}


def join_of(spec: Spec) -> TableJoin:
    on, mine, other, how = spec
    return TableJoin(Pairing(on), Side(LEFT, None, mine), Side(RIGHT, None, other), how, "r_")


def joined(join: TableJoin, left: Row | None, right: Row | None) -> Row:
    """The row of a result, as the docs tell it."""
    keys = dict(join.pairing.on)
    out: Row = {}
    for name in LEFT.names[:-1]:
        out[name] = left[name] if left else right[keys[name]] if right and name in keys else None
    for name in RIGHT.names[:-1]:
        if name not in keys.values():
            out[f"r_{name}" if name in LEFT.names else name] = right[name] if right else None
    return out | {"_deleted": False}


def matches(join: TableJoin, left: Row, right: Row) -> bool:
    mine = key_of(left, [name for name, _ in join.pairing.on])
    other = key_of(right, [name for _, name in join.pairing.on])
    return None not in mine and mine == other


def oracle(join: TableJoin, changes: list[Made]) -> dict[Key, Row]:
    sides: list[dict[Key, Row]] = [{}, {}]
    for made in changes:
        change(sides[made.side], (join.left, join.right)[made.side].table, made.row)
    lefts, rights = list(sides[0].values()), list(sides[1].values())
    found = [joined(join, a, b) for a in lefts for b in rights if matches(join, a, b)]
    if join.how in ("left", "full"):
        found += [joined(join, a, None) for a in lefts if not any(matches(join, a, b) for b in rights)]
    if join.how in ("right", "full"):
        found += [joined(join, None, b) for b in rights if not any(matches(join, a, b) for a in lefts)]
    rows = {key_of(row, join.identity): row for row in found}
    assert len(rows) == len(found), "identities tell results apart"
    return rows


def made(join: TableJoin) -> st.SearchStrategy[Made]:
    return changes_of(0, join.left.table, VALUES[0]) | changes_of(1, join.right.table, VALUES[1])


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@examples(25)
@given(data=st.data())
def test_any_split_and_restart_gives_what_the_oracle_gives_after_each_step(
    spec: Spec, data: st.DataObject
) -> None:
    join = join_of(spec)
    plan = data.draw(turns(made(join)))
    sent = sender(join.pairing, LEFT, RIGHT)
    play(join, plan, sent, lambda changes: oracle(join, changes))
    together = [each for turn in plan for each in turn.changes]
    assert told(batch(join, sent(together))) == told(oracle(join, together))


SPREAD = {name: spec for name, spec in SPECS.items() if join_of(spec).key}


@pytest.mark.parametrize("spec", SPREAD.values(), ids=SPREAD.keys())
@examples(25)
@given(data=st.data())
def test_buckets_give_together_what_one_gives(spec: Spec, data: st.DataObject) -> None:
    join = join_of(spec)
    changes = data.draw(st.lists(made(join), max_size=25))
    rows = sender(join.pairing, LEFT, RIGHT)(changes)
    assert told(in_buckets(join, rows)) == told(oracle(join, changes))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@examples(15)
@given(data=st.data(), counts=SCALES)
def test_joined_tables_that_are_rescaled(spec: Spec, data: st.DataObject, counts: list[int]) -> None:
    join = join_of(spec)
    send = sender(join.pairing, LEFT, RIGHT)
    steps = [send(turn.changes) for turn in data.draw(turns(made(join)))]
    check_rescaled(join, steps, counts)


CUSTOMERS = parse("id BIGINT, name STRING, _deleted BOOLEAN")
ORDERS = parse("order BIGINT, customer BIGINT, cents BIGINT, _deleted BOOLEAN")
FOREIGN = tables(None, on={"customer": "id"}).build(
    Side(ORDERS, None, ("order",)), Side(CUSTOMERS, None, ("id",))
)


def order(number: int, customer: int | None, cents: int = 5) -> Row:
    return {"order": number, "customer": customer, "cents": cents, "_deleted": False}


def customer(number: int, name: str) -> Row:
    return {"id": number, "name": name, "_deleted": False}


class Session:
    """An operator that is called step by step."""

    def __init__(self, join: Any):
        self.join, self.state = join, join.initial_state(self.rows([], []).schema)

    def rows(self, orders: list[Row], customers: list[Row]) -> pa.Table:
        schema = FOREIGN.pairing.schema("join", ORDERS, CUSTOMERS)  # type: ignore[attr-defined]
        return FOREIGN.pairing.sent(table(orders, ORDERS), table(customers, CUSTOMERS), schema)  # type: ignore[attr-defined]

    def __call__(self, orders: list[Row] = [], customers: list[Row] = []) -> list[tuple[Any, ...]]:  # noqa: B006
        step = self.join.step(self.state, self.rows(orders, customers), NEVER)
        return [tuple(row.values()) for row in listed(step.out)]


def test_a_change_on_either_side_changes_its_results() -> None:
    session = Session(FOREIGN)
    assert session([order(1, 7), order(2, 7), order(3, 8)]) == []
    assert session([], [customer(7, "ada")]) == [(1, 7, 5, "ada", False), (2, 7, 5, "ada", False)]
    assert session([order(1, 7, 6)]) == [(1, 7, 6, "ada", False)]
    assert session([], [customer(7, "eve")]) == [(2, 7, 5, "eve", False), (1, 7, 6, "eve", False)]
    assert session([gone(order(2, 7), ["order"])]) == [(2, None, None, None, True)]
    assert session([], [gone(customer(7, ""), ["id"])]) == [(1, None, None, None, True)]


def test_a_row_that_moves_to_another_partner_is_one_change_of_its_result() -> None:
    session = Session(FOREIGN)
    session([order(1, 7)], [customer(7, "ada"), customer(8, "bob")])
    assert session([order(1, 8)]) == [(1, 8, 5, "bob", False)]
    assert session([order(1, 9)]) == [(1, None, None, None, True)]
    assert session([order(1, None)]) == []


def test_of_several_changes_of_a_key_in_a_step_the_last_one_counts() -> None:
    session = Session(FOREIGN)
    session([], [customer(7, "ada")])
    assert session([order(1, 7, 1), order(1, 7, 2), order(2, 7), gone(order(2, 7), ["order"])]) == [
        (1, 7, 2, "ada", False)
    ]


def test_what_changes_nothing_tells_nothing_and_is_not_stored() -> None:
    session = Session(FOREIGN)
    session([order(1, 7)], [customer(7, "ada")])
    again = session.rows([order(1, 7), gone(order(9, 0), ["order"])], [customer(7, "ada")])
    step = FOREIGN.step(session.state, again, NEVER)
    assert len(step.out) == 0


def test_keys_that_are_null_meet_nothing() -> None:
    session = Session(FOREIGN)
    assert session([order(1, None)], [customer(7, "ada")]) == []


def test_a_key_that_was_deleted_may_come_again() -> None:
    session = Session(FOREIGN)
    session([order(1, 7)], [customer(7, "ada")])
    session([gone(order(1, 7), ["order"])])
    assert session([order(1, 7)]) == [(1, 7, 5, "ada", False)]


def test_rows_are_spread_by_the_columns_that_both_primary_keys_have() -> None:
    assert {name: join_of(spec).key for name, spec in SPECS.items() if join_of(spec).key} == {
        "by a part of both keys": ("_key1",),
        "primary keys": ("_key0",),
        "primary keys, left": ("_key0",),
        "primary keys, right": ("_key0",),
        "primary keys, full": ("_key0",),
        "primary keys and more, left": ("_key0",),
    }


def test_identities_are_the_primary_keys_without_what_follows_from_others() -> None:
    assert {name: join_of(spec).identity for name, spec in SPECS.items()} == {
        "many to many": ("id", "rid"),
        "many to many by doubles": ("id", "rid"),
        "by two columns": ("id", "part", "rid"),
        "by a part of both keys": ("part", "id", "rid"),
        "foreign key": ("id",),
        "foreign key, left": ("id",),
        "a part of a foreign key": ("id", "r_part"),
        "foreign key of the right": ("rid",),
        "foreign key of the right, inner": ("id", "rid"),
        "primary keys": ("id",),
        "primary keys, left": ("id",),
        "primary keys, right": ("id",),
        "primary keys, full": ("id",),
        "primary keys and more, left": ("id",),
    }


@pytest.mark.parametrize(
    ("on", "how", "words"),
    [
        ({"ref": "code"}, "left", "how=left finds at most one right row for a left one"),
        ({"ref": "rid"}, "right", "how=right finds at most one left row for a right one"),
        ({"ref": "rid"}, "full", "how=full finds at most one left row for a right one"),
        ({"id": "rid", "part": "part"}, "full", "how=full joins by the primary keys of both"),
    ],
)
def test_results_whose_key_might_be_missing_are_refused(on: dict[str, str], how: str, words: str) -> None:
    join = tables(None, on, how, "r_").build(Side(LEFT, None, ("id",)), Side(RIGHT, None, ("rid",)))
    with pytest.raises(UsageError, match=words):
        join.output_schema(sender(join.pairing, LEFT, RIGHT)([]).schema)  # type: ignore[attr-defined]


def test_what_is_no_table_and_an_unknown_how_are_refused() -> None:
    plain = pa.schema([field for field in RIGHT if field.name != "_deleted"])
    for side in (Side(RIGHT, None), Side(plain, None, ("rid",))):
        join = tables(None, {"ref": "rid"}, prefix="r_").build(Side(LEFT, None, ("id",)), side)
        with pytest.raises(UsageError, match="goes over tables, and the right rows are none"):
            join.output_schema(LEFT)
    with pytest.raises(UsageError, match="does not know how='outer'"):
        tables(None, "id", how="outer")


def test_keys_of_two_types_are_refused_where_one_stands_in_for_the_other() -> None:
    narrow = LEFT.set(0, pa.field("id", pa.int32()))
    sides = Side(narrow, None, ("id",)), Side(RIGHT, None, ("rid",))
    schema = Pairing((("id", "rid"),)).schema("join", narrow, RIGHT)
    with pytest.raises(UsageError, match='how=full needs "id" and "rid" to be of one type'):
        tables(None, {"id": "rid"}, "full", "r_").build(*sides).output_schema(schema)
    assert (
        tables(None, {"id": "rid"}, "left", "r_").build(*sides).output_schema(schema).field("id").type
        == pa.int32()
    )


def test_memory_follows_the_rows_that_are_there() -> None:
    session = Session(FOREIGN)
    rng = np.random.default_rng(1)
    for _ in range(60):
        numbers = rng.integers(0, 200, 400).tolist()
        session([order(n, int(rng.integers(0, 50)), int(rng.integers(9))) for n in numbers], [])
        session([gone(order(n, 0), ["order"]) for n in numbers])
    memory = FOREIGN.memory(session.state)
    assert memory is not None
    stored = memory.save(TablesInMemory(), SPILLED)
    assert not stored.stretches


def test_an_operator_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(FOREIGN)) == FOREIGN
