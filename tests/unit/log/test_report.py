"""What a log tells of itself: sums over partitions, and what verification found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.log.report import Finding, PartitionInfo, TopicInfo, Verification

counts = st.integers(0, 100)
verifications = st.builds(
    Verification,
    counts,
    counts,
    counts,
    st.lists(st.builds(Finding, st.just("t"), st.none() | counts, st.just("bad")), max_size=2).map(tuple),
)


def described(*parts: tuple[int, int, int | None]) -> TopicInfo:
    infos = [
        PartitionInfo(number, earliest, end, size, None, None, None)
        for number, (earliest, end, size) in enumerate(parts)
    ]
    return TopicInfo(topic.create("t", "n INT"), tuple(infos), rate=0.0)


@given(st.lists(verifications, max_size=4))
def test_verifications_add_up_in_their_order_and_are_right_where_nothing_was_found(
    every: list[Verification],
) -> None:
    total = sum(every, start=Verification())
    assert total.batches == sum(each.batches for each in every)
    assert total.records == sum(each.records for each in every)
    assert total.bytes == sum(each.bytes for each in every)
    assert list(total.findings) == [finding for each in every for finding in each.findings]
    assert total.ok == all(each.ok for each in every)


def test_a_topics_records_are_those_between_earliest_and_end() -> None:
    assert described((5, 8, 10), (0, 4, 20), (7, 7, 0)).records == 7


@pytest.mark.parametrize(
    ("sizes", "size"), [((10, 20), 30), ((0, 0), 0), ((10, None), None), ((None,), None)]
)
def test_a_topics_size_is_told_where_that_of_each_partition_is(
    sizes: tuple[int | None, ...], size: int | None
) -> None:
    assert described(*((0, 1, each) for each in sizes)).size == size
