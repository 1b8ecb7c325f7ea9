"""The bar adds up, whatever happened in which order."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headwater import Position
from headwater.engine.home import node_progress
from headwater.engine.home.accounting import Accounting
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.home.node_progress import NodeProgress

counts = st.integers(0, 100)
batches = st.lists(st.builds(Accounting, counts, counts, counts, counts, counts), max_size=10)


@given(batches)
def test_rows_are_used_late_duplicate_or_dead_and_none_is_below_zero(taken: list[Accounting]) -> None:
    total = Accounting()
    for each in taken:
        total = total.plus(each)
        assert total.rows == total.used + total.late + total.duplicates + total.dead
        assert min(total.to_dict().values()) >= 0
    for name in ("late", "duplicates", "dead", "out"):
        assert getattr(total, name) == sum(getattr(each, name) for each in taken)
    assert total.rows >= sum(each.rows for each in taken)


@given(batches)
def test_rows_that_are_all_there_before_they_are_judged_are_counted_as_they_are(
    taken: list[Accounting],
) -> None:
    judged = [each.late + each.duplicates + each.dead for each in taken]
    total = Accounting(rows=sum(judged))
    for each in taken:
        total = total.plus(each)
    assert total.rows == sum(judged) + sum(each.rows for each in taken)


def test_it_is_noted_with_the_progress_and_read_of_a_note_that_has_none(tmp_path: Path) -> None:
    at = InputProgress({"orders": Input(Position("orders", {0: 3}))})
    done = NodeProgress().after(0, at, Accounting(3, late=1)).after(1, at, Accounting(4, dead=2))
    home = tmp_path / "seen" / "v1"
    (home / "checkpoint").mkdir(parents=True)
    node_progress.write(home / "checkpoint", {home: done})
    assert node_progress.read(home).accounting == Accounting(7, late=1, dead=2)
    before = {name: value for name, value in done.to_json().items() if name != "accounting"}
    assert NodeProgress.from_json(before).accounting == Accounting()
