"""Each aggregate against an oracle over a plain list of values, in any order, split and order of merges."""

from __future__ import annotations

import math
import pickle
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.schema import is_variant, parse
from unit.operators.stepping import rank, stored

SCHEMA = parse(
    "n BIGINT, small SMALLINT, x DOUBLE, single FLOAT, d DECIMAL(38,3), price DECIMAL(9,2), "
    "t TIMESTAMP, day DATE, s STRING, ok BOOLEAN, raw BINARY, tags ARRAY<STRING>"
)
BIG = 2**63 - 1
FLOATS = [0.0, -0.0, 1.5, -0.1, 0.1, 1e16, -1e16, 1e300, -1e-300, 5e-324, 1e308, 1e-8]
ODD = [math.nan, math.inf, -math.inf]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.sampled_from([0, 1, -1, 7, BIG, -BIG - 1, BIG - 5, 2**32, -(2**32)]) | st.integers(-50, 50),
    "small": st.integers(-(2**15), 2**15 - 1),
    "x": st.sampled_from(FLOATS) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(ODD),
    "single": st.floats(width=32),
    "d": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda i: Decimal(i).scaleb(-3, Context(prec=60)))
    | st.decimals(-10, 10, places=3),
    "price": st.decimals(-100, 100, places=2),
    "t": st.integers(-5, 5) | st.integers(-(2**50), 2**50),
    "day": st.integers(-5, 5) | st.integers(-(10**5), 10**5),
    "s": st.sampled_from(["", "a", "ab", "ü", "\0", "z" * 40]) | st.text(max_size=3),
    "ok": st.booleans(),
    "raw": st.binary(max_size=2),
    "tags": st.lists(st.none() | st.sampled_from("pq"), max_size=2),
}
SEVEN = timedelta(seconds=7)
NUMBERS = ("n", "small", "x", "single", "d", "price")
SAFE = ("small", "x", "single", "price")
ORDERED = tuple(name for name in SCHEMA.names if name != "tags")
EVERY = tuple(SCHEMA.names)


@dataclass(frozen=True)
class Row:
    group: int
    at: int
    value: Any


Oracle = Callable[[list[Row], str], Any]


def there(rows: list[Row]) -> list[Any]:
    return [row.value for row in rows if row.value is not None]


def place(value: Any) -> Any:
    return rank({"value": value})


def nearest(number: Fraction) -> float:
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def odd(values: list[Any]) -> float | None:
    """What a sum comes to in which not all is finite."""
    kinds = {value for value in values if isinstance(value, float) and math.isinf(value)}
    if any(isinstance(value, float) and math.isnan(value) for value in values) or len(kinds) > 1:
        return math.nan
    return kinds.pop() if kinds else None


def is_decimal(column: str) -> bool:
    return pa.types.is_decimal(SCHEMA.field(column).type)


def sum_of(rows: list[Row], column: str) -> Any:
    values = there(rows)
    if not values or odd(values) is not None:
        return odd(values) if values else None
    total = sum(map(Fraction, values))
    if is_decimal(column):
        return Decimal(int(total * 10**3)).scaleb(-3, Context(prec=90))
    return nearest(total) if column in ("x", "single") else int(total)


def mean_of(rows: list[Row], column: str) -> Any:
    values = there(rows)
    if not values or odd(values) is not None:
        return odd(values) if values else None
    mean = sum(map(Fraction, values)) / len(values)
    if not is_decimal(column):
        return nearest(mean)
    places = SCHEMA.field(column).type.scale + 4
    wide = Context(prec=150, rounding=ROUND_HALF_UP)
    exact = wide.divide(Decimal(mean.numerator), Decimal(mean.denominator))
    return wide.quantize(exact, Decimal(1).scaleb(-places))


def rate_of(rows: list[Row], share: Fraction) -> Any:
    values = there(rows)
    if not values or odd(values) is not None:
        return odd(values) if values else None
    return nearest(sum(map(Fraction, values)) * share)


def variance_of(rows: list[Row], column: str) -> Any:
    values = [float(value) for value in there(rows)]
    if len(values) < 2:
        return None
    if odd(values) is not None:
        return math.nan
    mean = sum(map(Fraction, values)) / len(values)
    return nearest(sum((Fraction(value) - mean) ** 2 for value in values) / (len(values) - 1))


def stddev_of(rows: list[Row], column: str) -> Any:
    variance = variance_of(rows, column)
    return variance if variance is None else math.sqrt(variance)


def collected(rows: list[Row], limit: int) -> Any:
    known = sorted((row for row in rows if row.value is not None), key=lambda r: (r.at, place(r.value)))
    return [row.value for row in known][:limit] or None


def same(value: Any) -> str:
    """Equal for values that ``groupBy`` takes as equal."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def distinct_of(rows: list[Row], column: str) -> int:
    return len({same(value) for value in there(rows)})


def quantile_of(values: list[Any], q: float) -> Any:
    up_to = math.ceil(Fraction(str(q)) * len(values))
    return sorted(values, key=place)[max(up_to, 1) - 1] if values else None


def top(rows: list[Row], k: int) -> Any:
    values = [value + 0.0 if isinstance(value, float) else value for value in there(rows)]
    values = [math.nan if same(value) == "nan" else value for value in values]
    counts = Counter(map(same, values))
    known = {same(value): value for value in values}
    first = sorted(known, key=lambda text: (-counts[text], place(known[text])))[:k]
    return [{"value": known[text], "count": counts[text]} for text in first] or None


def doubles(rows: list[Row]) -> list[float]:
    return [float(value) + 0.0 for value in there(rows) if not math.isnan(value)]


CASES: list[tuple[Callable[[str], Aggregate], tuple[str, ...], Oracle]] = [
    (lambda c: agg.count(), EVERY, lambda rows, c: len(rows)),
    (agg.count, EVERY, lambda rows, c: len(there(rows))),
    (agg.sum, NUMBERS, sum_of),
    (agg.mean, NUMBERS, mean_of),
    (lambda c: agg.rate().within(SEVEN), EVERY, lambda rows, c: nearest(Fraction(len(rows), 7))),
    (
        lambda c: agg.rate(c, "1 minute").within(SEVEN),
        NUMBERS,
        lambda rows, c: rate_of(rows, Fraction(60, 7)),
    ),
    (agg.variance, SAFE, variance_of),
    (agg.stddev, SAFE, stddev_of),
    (agg.min, ORDERED, lambda rows, c: min(there(rows), key=place, default=None)),
    (agg.max, ORDERED, lambda rows, c: max(there(rows), key=place, default=None)),
    (agg.any, EVERY, lambda rows, c: max(there(rows), key=place, default=None)),
    (agg.first, EVERY, lambda rows, c: (collected(rows, 1) or [None])[0]),
    (agg.last, EVERY, lambda rows, c: (collected(rows, 10**6) or [None])[-1]),
    (agg.collect, EVERY, lambda rows, c: collected(rows, 100)),
    (lambda c: agg.collect(c, limit=2), EVERY, lambda rows, c: collected(rows, 2)),
    (agg.distinct, EVERY, distinct_of),
    (agg.approx_distinct, EVERY, distinct_of),
    (lambda c: agg.exact_quantile(c, 0.55), ORDERED, lambda rows, c: quantile_of(there(rows), 0.55)),
    (
        lambda c: agg.exact_quantile(c, [0, 0.5, 1]),
        ORDERED,
        lambda rows, c: [quantile_of(there(rows), q) for q in (0, 0.5, 1)] if there(rows) else None,
    ),
    (lambda c: agg.quantile(c, 0.55), NUMBERS, lambda rows, c: quantile_of(doubles(rows), 0.55)),
    (
        lambda c: agg.quantile(c, [0, 0.5, 1]),
        NUMBERS,
        lambda rows, c: [quantile_of(doubles(rows), q) for q in (0, 0.5, 1)] if doubles(rows) else None,
    ),
    (
        lambda c: agg.top_k(c, 3),
        tuple(c for c in ORDERED if c != "raw"),
        lambda rows, c: top(rows, 3),
    ),
]


def of_group(rows: list[Row], group: int) -> list[Row]:
    return [row for row in rows if row.group == group]


def partial(aggregate: Aggregate, rows: list[Row], column: str) -> tuple[pa.Table, list[int]]:
    """The partial results of some rows, as they are stored, and the groups they are of."""
    known = list(dict.fromkeys(row.group for row in rows))
    numbers = np.array([known.index(row.group) for row in rows], np.int64)
    at = np.array([row.at for row in rows], np.int64)
    values = pa.array([row.value for row in rows], SCHEMA.field(column).type)
    longer = pa.concat_arrays([values.slice(0, 1), values]).slice(1)
    table = pa.table([longer], schema=pa.schema([SCHEMA.field(column)]))
    fields = aggregate.state("total", SCHEMA)
    assert all(field.name.startswith("total.") for field in fields)
    made = aggregate.partial(table, at, numbers, len(known))
    return stored(pa.table(made, schema=pa.schema(fields))), known


Part = tuple[pa.Table, list[int]]


def merged(aggregate: Aggregate, parts: list[Part]) -> Part:
    groups = [group for _, of in parts for group in of]
    known = list(dict.fromkeys(groups))
    tables = [table for table, _ in parts]
    # A slice of something longer, as windows may have it.
    table = pa.concat_tables([tables[-1].slice(0, 1), *tables]).combine_chunks().slice(1)
    columns = [column.chunk(0) for column in table.columns]
    numbers = np.array([known.index(group) for group in groups], np.int64)
    made = aggregate.merge(columns, numbers, len(known))
    return stored(pa.table(made, schema=table.schema)), known


def played(aggregate: Aggregate, rows: list[Row], column: str, chance: random.Random) -> dict[int, list[Any]]:
    """What comes of the rows in some order, some split, and some sequence of merges, for each group."""
    rows = chance.sample(rows, len(rows))
    cuts = sorted(chance.sample(range(1, len(rows)), min(chance.randrange(5), len(rows) - 1)))
    bounds = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    parts = [partial(aggregate, rows[start:end], column) for start, end in bounds]
    while len(parts) > 1:
        some = chance.sample(range(len(parts)), chance.randrange(2, len(parts) + 1))
        rest = [part for number, part in enumerate(parts) if number not in some]
        parts = [*rest, merged(aggregate, [parts[number] for number in some])]
    return finished(aggregate, parts[0])


def finished(aggregate: Aggregate, part: Part) -> dict[int, list[Any]]:
    table, known = part
    fields = aggregate.output("total", SCHEMA)
    out = pa.table(
        aggregate.finish([column.combine_chunks() for column in table.columns]), schema=pa.schema(fields)
    )
    out.validate(full=True)
    return {group: list(row.values()) for group, row in zip(known, out.to_pylist(), strict=True)}


def typed(values: list[Any], kind: pa.DataType) -> list[Any]:
    return pa.array(values, kind).to_pylist()  # type: ignore[no-any-return]


@st.composite
def rows_of(draw: Callable[..., Any], column: str) -> list[Row]:
    value = st.none() | VALUES[column]
    row = st.builds(Row, st.integers(0, 3), st.integers(-2, 6), value)
    return draw(st.lists(row, min_size=1, max_size=25))  # type: ignore[no-any-return]


NAMED = [(make, columns, oracle, repr(make("c"))) for make, columns, oracle in CASES]


@pytest.mark.parametrize(("make", "columns", "oracle", "name"), NAMED, ids=[case[3] for case in NAMED])
@given(data=st.data())
def test_any_order_split_and_merge_gives_what_the_oracle_gives(
    make: Callable[[str], Aggregate], columns: tuple[str, ...], oracle: Oracle, name: str, data: st.DataObject
) -> None:
    column = data.draw(st.sampled_from(columns))
    rows = data.draw(rows_of(column))
    aggregate = make(column)
    groups = sorted({row.group for row in rows})
    expected = [oracle(of_group(rows, group), column) for group in groups]
    out = aggregate.output("total", SCHEMA)[0]
    chance = data.draw(st.randoms(use_true_random=False))
    if not fits(expected, out.type):
        with pytest.raises(UsageError, match="does not fit"):
            played(aggregate, rows, column, chance)
        return
    result = played(aggregate, rows, column, chance)
    told = [result[group][0] for group in groups]
    assert repr(told) == repr(typed(expected, out.type))


def fits(expected: list[Any], kind: pa.DataType) -> bool:
    if kind == pa.int64():
        return all(value is None or -BIG - 1 <= value <= BIG for value in expected)
    if pa.types.is_decimal(kind):
        return all(value is None or value.copy_abs() < Decimal(10) ** (38 - kind.scale) for value in expected)
    return True


@given(rows_of("x"), st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_a_partial_sum_of_floats_is_stored_as_the_same_bytes_whatever_the_order(
    rows: list[Row], one: random.Random, other: random.Random
) -> None:
    rows = [Row(0, row.at, row.value) for row in rows]
    for aggregate in (agg.sum("x"), agg.variance("x")):
        first, _ = merged(aggregate, [partial(aggregate, one.sample(rows, len(rows)), "x")])
        apart = [partial(aggregate, [row], "x") for row in other.sample(rows, len(rows))]
        second, _ = merged(aggregate, apart)
        assert first.equals(second)


def test_floats_of_all_sizes_are_added_exactly() -> None:
    chance = random.Random(5)
    values = [chance.uniform(-1, 1) * 2.0 ** chance.randrange(-1060, 1020) for _ in range(3000)]
    values += [sys.float_info.max, -sys.float_info.max, 5e-324, -5e-324]
    rows = pa.table({"x": values})
    assert agg.sum("x").over(rows) == [nearest(sum(map(Fraction, values)))]
    mean = sum(map(Fraction, values)) / len(values)
    variance = nearest(sum((Fraction(value) - mean) ** 2 for value in values) / (len(values) - 1))
    assert agg.variance("x").over(rows) == [variance]


def test_more_floats_than_one_block_are_added_exactly() -> None:
    values = np.random.default_rng(1).normal(size=(1 << 20) + 7) * 1e10
    assert agg.sum("x").over(pa.table({"x": values})) == [math.fsum(values)]


def test_a_sum_that_overflows_on_the_way_and_comes_back_is_no_error() -> None:
    assert agg.sum("n").over(pa.table({"n": [BIG, BIG, -BIG, -BIG + 3]})) == [3]


def test_a_sum_of_integers_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="a sum of integers does not fit BIGINT"):
        agg.sum("n").over(pa.table({"n": [BIG, 1]}))


def test_a_sum_of_floats_beyond_all_floats_is_infinite_and_its_mean_is_not() -> None:
    rows = pa.table({"x": [1.5e308, 1.5e308]})
    assert (agg.sum("x").over(rows), agg.mean("x").over(rows)) == ([math.inf], [1.5e308])


def chopped(values: pa.Array, pieces: int, aggregate: Aggregate, seed: int) -> list[Any]:
    """The result over many values in random order, cut into pieces that are merged one by one."""
    chance = np.random.default_rng(seed)
    values = values.take(pa.array(chance.permutation(len(values))))
    total: list[pa.Array] | None = None
    for places in np.array_split(np.arange(len(values)), pieces):
        part = pa.table({"v": values.take(pa.array(places))})
        new = aggregate.partial(part, places, np.zeros(len(places), np.int64), 1)
        if total is not None:
            both = [pa.concat_arrays(pair) for pair in zip(total, new, strict=True)]
            new = aggregate.merge(both, np.zeros(2, np.int64), 1)
        total = new
    assert total is not None
    return [column.to_pylist()[0] for column in aggregate.finish(total)]


@pytest.mark.parametrize("many", [5, 150, 200, 300, 390, 500, 700, 5_000, 30_000])
@pytest.mark.parametrize("error", [0.02, 0.1, 0.005])
def test_an_approximate_distinct_count_depends_on_the_values_alone_and_keeps_its_error(
    many: int, error: float
) -> None:
    values = pa.array([f"user {number}" for number in range(many)])
    results = {
        tuple(chopped(pa.concat_arrays([values, values.slice(0, many // 2)]), pieces, aggregate, seed))
        for seed, pieces in enumerate([1, 1, 2, 7, 40])
        for aggregate in [agg.approx_distinct("v", error=error, bounds=True)]
    }
    assert len(results) == 1
    estimate, low, high = results.pop()
    assert low <= estimate <= high
    assert abs(estimate - many) <= 4 * error * many + 1


def test_hashes_of_a_million_values_look_random() -> None:
    (estimate,) = agg.approx_distinct("n", error=0.002).over(pa.table({"n": np.arange(1_000_000)}))
    assert abs(estimate - 1_000_000) < 8_000


@pytest.mark.parametrize("pieces", [1, 20])
def test_a_quantile_of_many_values_keeps_its_error(pieces: int) -> None:
    many = 50_000
    shares = [0.01, 0.25, 0.5, 0.99]
    aggregate = agg.quantile("v", shares, error=0.02, bounds=True)
    found, low, high = chopped(pa.array(np.arange(many)), pieces, aggregate, seed=3)
    for share, value, least, most in zip(shares, found, low, high, strict=True):
        assert least <= value <= most
        assert abs(value / many - share) < 0.06
    assert not aggregate.exact


@pytest.mark.parametrize("error", [0.2, 0.05, 0.01, 0.001])
def test_a_quantile_of_few_values_is_exact_in_any_split(error: float) -> None:
    many = int(2.5 / error)
    shares = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0]
    expected = agg.exact_quantile("v", shares).over(pa.table({"v": np.arange(float(many))}))
    for pieces in (1, 3, 10):
        aggregate = agg.quantile("v", shares, error=error, bounds=True)
        assert chopped(pa.array(np.arange(float(many))), pieces, aggregate, seed=pieces) == 3 * expected


@pytest.mark.parametrize(("k", "room"), [(10, 768), (200, 2_400)])
def test_few_distinct_values_are_counted_exactly_by_top_k_in_any_split(k: int, room: int) -> None:
    values = pa.array([number for number in range(room) for _ in range(1 + number % 3)])
    for pieces in (1, 3, 30):
        (found,) = chopped(values, pieces, agg.top_k("v", k=k), seed=pieces)
        assert [(row["value"], row["count"]) for row in found] == [(3 * n + 2, 3) for n in range(k)]


@pytest.mark.parametrize("pieces", [1, 20])
def test_the_most_frequent_of_many_values_are_found_and_their_bounds_hold(pieces: int) -> None:
    counts = {number: 3_000 - 300 * number for number in range(5)}
    values = [n for n, times in counts.items() for _ in range(times)] + list(range(100, 5_000))
    aggregate = agg.top_k("v", k=3, bounds=True)
    found, low, high = chopped(pa.array(values), pieces, aggregate, seed=4)
    assert [row["value"] for row in found] == [0, 1, 2]
    for row, least, most in zip(found, low, high, strict=True):
        assert least <= counts[row["value"]] <= most
    assert not aggregate.exact


@given(data=st.data())
def test_a_filter_knows_all_that_was_put_in_and_is_the_same_bytes_in_any_split(data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(["n", "small", "x", "t", "day", "s", "ok", "raw"]))
    rows = data.draw(rows_of(column))
    aggregate = agg.bloom(column, expected=50)
    one, other = (
        played(aggregate, rows, column, data.draw(st.randoms(use_true_random=False))) for _ in range(2)
    )
    assert one == other
    for group, (bloom,) in one.items():
        values = there(of_group(rows, group))
        assert (bloom is None) == (not values)
        if values:
            assert all(agg.may_contain(bloom, pa.array(values, SCHEMA.field(column).type)))


def test_a_filter_says_no_to_nearly_all_others() -> None:
    (bloom,) = agg.bloom("s", expected=1_000).over(pa.table({"s": [f"in {n}" for n in range(1_000)]}))
    told = agg.may_contain(bloom, [f"out {n}" for n in range(10_000)])
    assert sum(told) < 200
    assert len(bloom) < 1_300


@pytest.mark.parametrize("make", [case[0] for case in CASES] + [agg.bloom], ids=lambda make: repr(make("c")))
def test_an_aggregate_is_pickled_and_has_a_text_that_tells_it(make: Callable[[str], Aggregate]) -> None:
    assert pickle.loads(pickle.dumps(make("s"))) == make("s")
    assert repr(make("s")) == repr(pickle.loads(pickle.dumps(make("s"))))


def test_the_text_of_an_aggregate_is_what_the_checkpoint_remembers() -> None:
    assert (
        str(agg.quantile("x", [0.5, 0.9])) == "Quantile(column='x', q=(0.5, 0.9), error=0.01, bounds=False)"
    )
    assert str(agg.sum("x")) == "Sum(column='x')"
    assert str(agg.count()) == "Count(column=None)"


REFUSED = [
    (agg.sum("s"), 'sum cannot take column "s"'),
    (agg.mean("t"), 'mean cannot take column "t"'),
    (agg.stddev("ok"), 'stddev cannot take column "ok"'),
    (agg.min("tags"), 'min cannot take column "tags"'),
    (agg.exact_quantile("tags", 0.5), 'exact_quantile cannot take column "tags"'),
    (agg.quantile("t", 0.5), 'quantile cannot take column "t"'),
    (agg.top_k("raw"), 'top_k cannot take column "raw"'),
    (agg.bloom("d"), 'bloom cannot take column "d"'),
    (agg.count("nn"), 'count finds no column "nn"'),
    (agg.last("nn"), 'last finds no column "nn"'),
    (agg.collect("nn"), 'collect finds no column "nn"'),
]


@pytest.mark.parametrize(("aggregate", "message"), REFUSED, ids=[case[1] for case in REFUSED])
def test_a_column_that_an_aggregate_cannot_take_is_refused(aggregate: Aggregate, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        aggregate.output("total", SCHEMA)


@pytest.mark.parametrize(
    "make",
    [
        lambda: agg.quantile("x", 1.5),
        lambda: agg.quantile("x", []),
        lambda: agg.quantile("x", 0.5, error=0),
        lambda: agg.collect("x", limit=0),
        lambda: agg.top_k("x", k=-1),
        lambda: agg.approx_distinct("x", error=2),
        lambda: agg.bloom("x", expected=0),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused_at_once(make: Callable[[], Aggregate]) -> None:
    with pytest.raises(UsageError):
        make()


@pytest.mark.parametrize("make", [case[0] for case in CASES] + [agg.bloom], ids=lambda make: repr(make("c")))
def test_no_rows_give_no_results(make: Callable[[str], Aggregate]) -> None:
    none = np.empty(0, np.int64)
    for aggregate in (make("price"), make("x")) if make is not agg.bloom else (make("x"),):
        partials = aggregate.partial(SCHEMA.empty_table(), none, none, 0)
        schema = pa.schema(aggregate.state("total", SCHEMA))
        assert len(pa.table(aggregate.merge(partials, none, 0), schema=schema)) == 0
        out = pa.schema(aggregate.output("total", SCHEMA))
        assert len(pa.table(aggregate.finish(partials), schema=out)) == 0


def test_free_json_is_counted_and_chosen_and_stays_free_json() -> None:
    rows = parse("value VARIANT")
    for aggregate in (agg.first("value"), agg.last("value"), agg.any("value")):
        assert is_variant(aggregate.output("total", rows)[0])
    assert agg.count("value").output("total", rows)[0].type == pa.int64()
    for refused in (agg.min("value"), agg.collect("value"), agg.top_k("value")):
        with pytest.raises(UsageError, match='cannot take column "value"'):
            refused.output("total", rows)


def test_of_equal_times_the_first_value_is_the_least_and_the_last_the_greatest() -> None:
    rows, at = pa.table({"s": ["b", "c", None, "a"]}), np.array([1, 1, 0, 1])
    assert (agg.first("s").over(rows, at), agg.last("s").over(rows, at)) == (["a"], ["c"])


def test_nothing_but_nulls_gives_null_and_a_count_of_zero() -> None:
    rows = pa.table({"x": pa.array([None, None], pa.float64())})
    for make in (
        agg.sum,
        agg.mean,
        agg.variance,
        agg.min,
        agg.any,
        agg.last,
        agg.collect,
        agg.top_k,
        agg.bloom,
    ):
        assert make("x").over(rows) == [None]
    for make in (agg.count, agg.distinct, agg.approx_distinct):
        assert make("x").over(rows) == [0]
    assert agg.quantile("x", 0.5, bounds=True).over(rows) == [None, None, None]


def held(aggregate: Aggregate, values: Any) -> int:
    """Return the bytes of the partial result of one group."""
    rows = pa.table({"x": values})
    nowhere = np.zeros(len(rows), np.int64)
    return sum(part.nbytes for part in aggregate.partial(rows, nowhere, nowhere, 1))


def test_a_group_keeps_as_much_as_the_page_says() -> None:
    chance = np.random.default_rng(7)
    near = chance.normal(100, 10, 10_000)
    far = np.append(
        10.0 ** chance.integers(-300, 300, 10_000) * chance.choice([-1, 1], 10_000), [5e-324, 1e308]
    )
    for make, usual, most in (
        (agg.sum, 30, 300),
        (agg.mean, 30, 300),
        (agg.variance, 60, 900),
        (agg.stddev, 60, 900),
    ):
        assert held(make("x"), near) <= usual
        assert held(make("x"), far) <= most
    numbers = np.arange(300_000)
    assert held(agg.approx_distinct("x"), numbers) < 2_200
    assert 3.5 < held(agg.approx_distinct("x", 0.01), numbers) / held(agg.approx_distinct("x"), numbers) < 4.5
    assert held(agg.quantile("x", 0.5), chance.random(300_000)) < 7_000
    assert held(agg.bloom("x", expected=50_000), numbers[:1]) == pytest.approx(1.2 * 50_000, rel=0.01)
    assert held(agg.bloom("x", expected=50_000), numbers[:50_000]) == pytest.approx(1.2 * 50_000, rel=0.01)
