"""Numbers of keys against a dict that never gives one twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.key_hash import KeyHashes, hashed_groups
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.slots import slots_of_hashes, slots_of_numbers
from soaking import examples


def keys(some: Sequence[object]) -> KeyHashes:
    return hashed_groups(pa.table({"k": pa.array(some, None if some else pa.string())}), ["k"]).keys


@examples(60)
@given(
    st.lists(st.tuples(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef"))), max_size=8)
)
def test_a_held_key_keeps_its_number_and_no_number_is_given_twice(
    steps: list[tuple[set[str], set[str]]],
) -> None:
    key_ids, held, given_out = KeyIds(), dict[str, int](), set[int]()
    for asked, kept in steps:
        found = dict(zip(sorted(asked), key_ids.numbers(keys(sorted(asked))).tolist(), strict=True))
        new = {key: number for key, number in found.items() if key not in held}
        assert {key: found[key] for key in found if key in held} == {k: held[k] for k in held if k in found}
        assert not given_out & set(new.values())
        given_out |= set(new.values())
        held = {key: number for key, number in (held | new).items() if key in kept}
        key_ids.keep(np.array(sorted(held.values()), np.int64))
        assert len(key_ids) == len(held)


def test_new_keys_get_the_next_numbers_in_their_order() -> None:
    key_ids = KeyIds()
    for new, counted in ((["b", "a"], [0, 1]), (["c", "a", "d"], [2, 1, 3])):
        found = key_ids.numbers(keys(new))
        assert (found >> 8).tolist() == counted
        assert slots_of_numbers(found).tolist() == slots_of_hashes(keys(new).high).tolist()


def test_it_is_crowded_when_there_are_twice_as_many_as_were_held() -> None:
    key_ids = KeyIds()
    numbers = key_ids.numbers(keys(range(1025)))
    assert key_ids.crowded
    key_ids.keep(numbers)
    assert not key_ids.crowded
    key_ids.numbers(keys(range(1025, 2050)))
    assert not key_ids.crowded
    key_ids.numbers(keys(["one more"]))
    assert key_ids.crowded
