from __future__ import annotations

from headwater.errors import Conflict
from headwater.log.expected_version import Check, Condition, Proposal, decide
from headwater.log.position import Position
from headwater.log.tag_index import TagIndex
from headwater.log.tags import key_tag

ADA, BOB = key_tag(b"ada"), key_tag(b"bob")


def proposal(key: bytes, *checks: Check) -> Proposal:
    return Proposal(0, [[key]], list(checks))


def test_the_first_of_two_that_exclude_each_other_is_accepted() -> None:
    index = TagIndex(None)
    free = Check(Condition("ada"), (ADA,), {0: 0})
    first, second, third = decide(
        index, [proposal(ADA, free), proposal(ADA, free), proposal(BOB)], {0: 5}, "accounts"
    )
    assert (first, third) == (5, 6)
    assert isinstance(second, Conflict) and second.offset == 5
    index.close()


def test_a_refusal_names_the_topic_the_condition_and_the_record() -> None:
    index = TagIndex(None)
    index.add(1, 7, [[ADA]])
    condition = Condition("ada", tags=["x"], after=Position("accounts", {1: 3}))
    [refused] = decide(index, [proposal(BOB, Check(condition, (ADA,), {1: 3}))], {0: 0}, "accounts")
    assert isinstance(refused, Conflict)
    assert 'topic "accounts"' in refused.message
    assert (
        refused.detail == "key 'ada' with tags \"x\", none from accounts:1=3 on: partition 1, offset 7 is one"
    )
    index.close()


def test_all_partitions_that_a_condition_looks_at_are_concerned() -> None:
    check = Check(Condition(tags=["x"]), (ADA,), {0: 0, 3: 0})
    assert proposal(ADA, check).partitions == {0, 3}
