"""Keys as small numbers against a dict."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.slots import Slots, sized
from soaking import examples


@examples(100)
@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 20))), max_size=30))
def test_keys_have_numbers_of_their_own_and_give_them_back(steps: list[tuple[bool, set[int]]]) -> None:
    slots, held, most = Slots(), dict[int, int](), 0
    for adding, chosen in steps:
        some = [key for key in chosen if (key in held) != adding]
        keys = np.array(some, np.object_)
        if adding:
            held |= dict(zip(some, slots.give(keys).tolist(), strict=True))
        else:
            slots.drop(slots.find(keys))
            held = {key: slot for key, slot in held.items() if key not in some}
        most = max(most, len(held))
        everything = np.arange(22).astype(np.object_)
        assert slots.find(everything).tolist() == [held.get(key, NOWHERE) for key in range(22)]
        assert len(set(held.values())) == len(held)
        assert len(slots) == most


def test_an_array_grows_by_half_at_least_and_keeps_what_it_has() -> None:
    array = np.arange(100)
    assert sized(array, 100, NOWHERE) is array
    grown = sized(array, 101, NOWHERE)
    assert len(grown) == 150
    assert grown[:100].tolist() == list(range(100))
    assert set(grown[100:].tolist()) == {NOWHERE}
    assert len(sized(array, 1000, 0)) == 1000
