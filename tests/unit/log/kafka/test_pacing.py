"""How much is on its way at once: about what the broker takes in half a second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.log.kafka.outgoing import OutgoingMessage
from headwater.log.kafka.pacing import FIRST, LEAST, MOST, Pace, size


def messages(*lengths: int) -> list[OutgoingMessage]:
    return [OutgoingMessage(0, None, b"x" * length, []) for length in lengths]


@given(st.lists(st.integers(0, 1 << 18), max_size=30), st.integers(0, 5))
def test_pieces_are_the_messages_in_their_order(lengths: list[int], first: int) -> None:
    made = messages(*lengths)
    pieces = list(Pace().pieces(made, first))
    assert [each for piece in pieces for each in piece] == made[first:]
    assert all(len(piece) == 1 or sum(map(size, piece)) <= FIRST for piece in pieces)


def test_a_record_that_is_larger_than_a_piece_goes_alone() -> None:
    assert list(map(len, Pace().pieces(messages(10, 8 << 20, 10)))) == [1, 1, 1]


def test_pieces_grow_with_a_fast_broker_and_shrink_with_a_slow_one() -> None:
    pace, made = Pace(), messages(*[1_000] * 100_000)
    sizes = []
    for seconds in [0.001] * 6 + [30.0] * 3:
        piece = next(pace.pieces(made))
        sizes.append(sum(map(size, piece)))
        pace.took(piece, seconds)
    assert sizes[:4] == sorted(sizes[:4])
    assert sizes[0] <= FIRST and MOST - 2_000 < sizes[5] <= MOST
    assert LEAST - 2_000 < sizes[-1] < FIRST
    pace.begin_anew()
    assert sum(map(size, next(pace.pieces(made)))) > FIRST - 2_000
