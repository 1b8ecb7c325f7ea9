"""What a receipt tells of a sink, and what every sink must have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sinks.sink import Batch, Sink, missing_batches


@given(st.integers(-1, 99), st.integers(-1, 99))
def test_batches_are_lost_where_the_last_is_before_that_of_the_receipt(given: int, last: int) -> None:
    assert (missing_batches(str(given), last) is None) == (given <= last)


def test_an_empty_receipt_is_that_of_a_sink_that_has_committed_nothing() -> None:
    assert missing_batches("", -1) is None
    told = missing_batches("7", 4)
    assert told == "batch 7 was committed, and there are batches up to 4 only"


@pytest.mark.parametrize("missing", ["begin", "commit", "receipt", "resume", "close"])
def test_a_sink_that_lacks_a_part_of_the_contract_cannot_be_made(missing: str) -> None:
    parts = {name: lambda self, *_: None for name in ("begin", "commit", "receipt", "resume", "close")}
    type("Whole", (Sink,), parts)()
    del parts[missing]
    with pytest.raises(TypeError, match=missing):
        type("Partial", (Sink,), parts)()


def test_a_sink_is_closed_with_its_block() -> None:
    class Counting(Sink):
        closed = 0

        def begin(self) -> int:
            return -1

        def commit(self, batch: Batch) -> bool:
            return True

        def receipt(self) -> str:
            return ""

        def resume(self, receipt: str) -> str | None:
            return None

        def close(self) -> None:
            self.closed += 1

    with pytest.raises(ZeroDivisionError), Counting() as sink:
        raise ZeroDivisionError
    assert sink.closed == 1
