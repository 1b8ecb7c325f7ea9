"""What is found is what a dict gives, wherever entries lie: in memory, logged, in runs, after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.memory.entries import Entries, Merge, newest
from headwater.operators.memory.sorted_runs import Limits, SortedRuns, StoredRuns
from soaking import examples

EMPTY = pa.schema([("value", pa.int64()), ("text", pa.string())]).empty_table()
Model = dict[tuple[int, int], int]
NUMBERS = st.integers(-4, 4)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 99)), max_size=8)


def summed(rows: pa.Table, groups: Any, count: int) -> pa.Table:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, rows["value"].to_numpy())
    return table(sums.tolist())


def table(values: list[int]) -> pa.Table:
    return pa.table([values, [f"v{value}" for value in values]], schema=EMPTY.schema)


def entries(pairs: list[tuple[int, int, int]]) -> Entries:
    major, minor, values = (list(each) for each in zip(*pairs, strict=True)) if pairs else ([], [], [])
    return Entries(np.array(major, np.int64), np.array(minor, np.int64), table(values))


def contents(found: Entries) -> Model:
    pairs = zip(found.major.tolist(), found.minor.tolist(), strict=True)
    values = found.rows["value"].to_pylist()
    assert found.rows["text"].to_pylist() == [f"v{value}" for value in values]
    listed = list(zip(pairs, values, strict=True))
    assert [pair for pair, _ in listed] == sorted({pair for pair, _ in listed}), "sorted, each once"
    return dict(listed)


MERGES: dict[str, tuple[Merge, Callable[[int | None, int], int]]] = {
    "newest": (newest, lambda old, new: new),
    "summed": (summed, lambda old, new: (old or 0) + new),
}


@pytest.mark.parametrize("kind", MERGES)
@examples(120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_found_is_what_a_dict_has_wherever_it_lies(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    merge, combined = MERGES[kind]
    files = _files(tmp_path)
    limits = Limits(
        *(data.draw(st.sampled_from(sizes)) for sizes in ([0, 100, 300, 10**6], [0, 2, 99], [1, 90, 999]))
    )
    runs, model, floor, behind = SortedRuns(EMPTY, merge), Model(), -100, -100
    stored = StoredRuns()
    for action in data.draw(
        st.lists(st.sampled_from(["add", "add", "add", "save", "open", "drop", "retain"]), max_size=14)
    ):
        match action:
            case "add":
                for major, minor, value in (pairs := data.draw(PAIRS)):
                    model[major, minor] = combined(model.get((major, minor)), value)
                pairs = [pair for pair in pairs if pair[0] >= floor and pair[1] > behind]
                runs.add(entries(pairs))
            case "save" | "open":
                stored = runs.save(files, limits)
                if action == "open":
                    runs = SortedRuns(EMPTY, merge)
                    runs.open(stored, files)
            case "drop":
                runs.drop(floor := max(floor, data.draw(NUMBERS)))
            case "retain":
                runs.retain(behind := max(behind, data.draw(NUMBERS)))
        model = {pair: value for pair, value in model.items() if pair[0] >= floor and pair[1] > behind}
        assert contents(runs.all()) == model
    first, last = data.draw(NUMBERS), data.draw(NUMBERS)
    assert contents(runs.between(first, last)) == {p: v for p, v in model.items() if first <= p[0] < last}
    least = [p[0] for p in model if p[0] >= first]
    if behind == -100:
        assert runs.next(first) == min(least, default=None)
    asked = data.draw(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), unique_by=lambda each: each[0]))
    within = runs.within(*(np.array([each[place] for each in asked], np.int64) for place in range(3)))
    assert contents(within) == {
        p: v for p, v in model.items() if any(p[0] == each[0] and each[1] <= p[1] < each[2] for each in asked)
    }
    if kind == "newest" and floor == behind == -100:
        pairs = data.draw(st.lists(st.tuples(NUMBERS, NUMBERS)))
        found = runs.find(*(np.array([pair[place] for pair in pairs], np.int64) for place in range(2)))
        assert found.known.tolist() == [pair in model for pair in pairs]
        assert found.rows("value")["value"].to_pylist() == [model.get(pair) for pair in pairs]
        assert found.numbers("value", -1).tolist() == [model.get(pair, -1) for pair in pairs]
    some = sorted({each[0] for each in asked})
    assert contents(runs.under(np.array(some, np.int64))) == {p: v for p, v in model.items() if p[0] in some}


def test_what_is_overwritten_in_every_step_is_not_logged_for_ever(tmp_path: Path) -> None:
    files, limits = (
        _files(tmp_path),
        Limits(80_000, 64, 1 << 20),
    )
    runs, numbers = SortedRuns(EMPTY, newest), np.arange(500)
    for step in range(60):
        runs.add(Entries(numbers, numbers, table([step] * 500)))
        stored = runs.save(files, limits)
        assert sum(each.size for each in stored.stretches) < 12 * 16_000


def test_many_entries_become_few_runs_of_bounded_parts(tmp_path: Path) -> None:
    files, limits = (
        _files(tmp_path),
        Limits(20_000, 64, 50_000),
    )
    runs, random = SortedRuns(EMPTY, newest), np.random.default_rng(1)
    for step in range(100):
        major = random.integers(0, 10**9, 1000)
        runs.add(Entries(major, np.zeros(1000, np.int64), table([step] * 1000)))
        stored = runs.save(files, limits)
    assert len(stored.runs) < 16
    assert max(part.size for part in stored.stretches) < 4 * limits.part_bytes
    assert runs.size <= 2 * limits.spill_bytes
    again = SortedRuns(EMPTY, newest)
    again.open(stored, files)
    assert contents(again.all()) == contents(runs.all())


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_that_nothing_merges_all_stay_until_they_are_forgotten(
    tmp_path: Path, data: st.DataObject
) -> None:
    files, limits = _files(tmp_path), Limits(data.draw(st.sampled_from([0, 300])), 2, 90)
    runs, model, behind = SortedRuns(EMPTY, None), list[tuple[int, int, int]](), -100
    for action in data.draw(st.lists(st.sampled_from(["add", "add", "open", "forget"]), max_size=12)):
        match action:
            case "add":
                pairs = [pair for pair in data.draw(PAIRS) if pair[1] > behind]
                runs.add(entries(pairs))
                model += pairs
            case "open":
                stored, runs = runs.save(files, limits), SortedRuns(EMPTY, None)
                runs.open(stored, files)
            case "forget":
                runs.forget(behind := max(behind, data.draw(NUMBERS)))
        model = [pair for pair in model if pair[1] > behind]
        found = runs.all()
        listed = zip(found.major.tolist(), found.minor.tolist(), found.rows["value"].to_pylist(), strict=True)
        assert list(listed) == sorted(model, key=lambda pair: pair[:2]), "equal ones in the order of arrival"
        fading = runs.fading()
        assert (fading is None) == (not model)
        assert fading is None or fading > behind
    asked = data.draw(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    matches = runs.matches(
        *(np.array([each[place] for each in asked], np.int64) for place in range(3)), "value"
    )
    told = [
        (query, value)
        for query, (of, first, last) in enumerate(asked)
        for major, minor, value in model
        if of == major and first <= minor <= last
    ]
    found_pairs = zip(matches.of.tolist(), matches.entries.rows["value"].to_pylist(), strict=True)
    assert sorted(found_pairs) == sorted(told)
    if behind == -100:
        major, minor = (np.array([each[place] for each in asked], np.int64) for place in range(2))
        mine = [[pair[1] for pair in model if pair[0] == each[0]] for each in asked]
        assert runs.last_until(major, minor).tolist() == [
            max((at for at in some if at <= each[1]), default=NEVER)
            for some, each in zip(mine, asked, strict=True)
        ]
        assert runs.first_after(major, minor).tolist() == [
            min((at for at in some if at > each[1]), default=FOREVER)
            for some, each in zip(mine, asked, strict=True)
        ]


def test_what_is_of_no_use_goes_when_runs_are_merged(tmp_path: Path) -> None:
    files, told = _files(tmp_path), list[bool]()

    def useful(found: Entries, bottom: bool) -> Any:
        told.append(bottom)
        return found.rows["value"].to_numpy() != 7

    runs = SortedRuns(EMPTY, None, useful=useful)
    runs.add(entries([(1, 1, 7), (2, 1, 3)]))
    assert len(runs) == 2
    runs.add(entries([(1, 2, 4)]))
    assert (len(runs), told) == (2, [False])
    runs.save(files, Limits(0, 0, 1 << 20))
    assert (len(runs), told) == (2, [False, True])


def test_the_least_number_of_all_is_one_that_can_be_held(tmp_path: Path) -> None:
    runs, files = SortedRuns(EMPTY, newest), _files(tmp_path)
    runs.add(entries([(NEVER, NEVER, 1), (0, NEVER, 2)]))
    runs.save(files, Limits(0, 0, 1))
    assert contents(runs.all()) == {(NEVER, NEVER): 1, (0, NEVER): 2}


def _files(folder: Path) -> StateRunFiles:
    return StateRunFiles(LocalFiles(folder), Files(LocalFiles(folder)))
