from __future__ import annotations

import headwater
from account_kit import Deposit, Deposited, account
from headwater.sourcing.event_feed import DeciderFeed


def test_events_are_handed_over_until_they_are_committed() -> None:
    decider = account()
    with headwater.open("memory:") as log, decider.open(log) as bank:
        for cents in (1, 2, 3):
            bank.execute("ada", Deposit(cents), request_id=f"r{cents}")
        bank.execute("ada", Deposit(0), request_id="r0", remember=True)  # which is no event
        with DeciderFeed(log, "account", decider.schema, "readers") as feed:
            assert list(feed.before()) == []
            first = feed.poll(5)
            assert [each.event for each in first] == [Deposited(1), Deposited(2), Deposited(3)]
            assert (first[0].key, first[0].request_id, first[0].offset) == ("ada", "r1", 0)
            assert feed.commit({0: 2})
            assert [each.event for each in feed.before()] == [Deposited(1), Deposited(2)]
        with DeciderFeed(log, "account", decider.schema, "readers") as feed:
            assert [each.event for each in feed.poll(5)] == [Deposited(3)]
            assert feed.commit()
            assert feed.position().offsets == {0: 4}
