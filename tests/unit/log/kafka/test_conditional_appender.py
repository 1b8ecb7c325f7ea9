"""How records that lie far apart are read; the rest needs a broker: ``tests/contract``, and below."""

from __future__ import annotations

from headwater.log.kafka.conditional_appender import _spans


def test_offsets_are_cut_where_the_next_one_is_far_away() -> None:
    assert list(_spans([])) == []
    assert list(_spans([1, 2, 400, 5000, 5001])) == [[1, 2, 400], [5000, 5001]]
