from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.errors import Rejected
from headwater.sourcing import unique
from headwater.testing.manual_clock import ManualClock


def test_a_value_has_one_owner_until_it_is_released() -> None:
    with unique("username").open("memory:") as names:
        first = names.claim("ada", "user-1", request_id="r1")
        assert names.claim("ada", "user-1", request_id="r1") == first
        assert names.claim("ada", "user-1").events == ()
        with pytest.raises(Rejected, match='username "ada" is taken'):
            names.claim("ada", "user-2")
        names.release("ada", "user-2")
        assert names.owner("ada") == "user-1"
        names.release("ada", "user-1")
        names.claim("ada", "user-2")
        assert names.owner("ada") == "user-2"
        assert names.owner("Ada") is None


def test_of_many_who_ask_at_once_one_gets_it(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with unique("username").open(url) as one, unique("username").open(url) as other:

        def claim(number: int) -> bool:
            try:
                (one if number % 2 else other).claim(f"name-{number // 8}", f"user-{number}")
                return True
            except Rejected:
                return False

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(claim, range(80)))
        assert [sum(got[start : start + 8]) for start in range(0, 80, 8)] == [1] * 10


def test_a_claim_that_is_held_for_a_time_expires_or_is_confirmed() -> None:
    clock = ManualClock()
    with unique("seat", hold="15 minutes").open("memory:", clock=clock) as seats:
        seats.claim("7a", "ada")
        seats.claim("7b", "bob")
        seats.confirm("7b", "bob")
        assert seats.confirm("7b", "bob").events == ()
        clock.advance("15 minutes")
        with pytest.raises(Rejected, match="not claimed by this owner"):
            seats.confirm("7a", "ada")
        assert (seats.owner("7a"), seats.owner("7b")) == (None, "bob")
        seats.claim("7a", "eve")
