from __future__ import annotations

import headwater
from account_kit import Deposit, Withdraw, account
from headwater.sourcing.history import history


def test_who_only_looks_sees_what_the_aggregates_say_themselves() -> None:
    decider = account(partitions=3)
    with headwater.open("memory:") as log, decider.open(log) as bank:
        for key in ("ada", "bob", "eve"):
            bank.execute(key, Deposit(5), request_id=f"for-{key}")
            bank.execute(key, Withdraw(2))
        for key in ("ada", "bob", "eve"):
            assert list(history(decider, log, key)) == list(bank.history(key))
        assert [each.state for each in history(decider, log, "ada")] == [5, 3]
        assert list(history(decider, log, "kim")) == []
