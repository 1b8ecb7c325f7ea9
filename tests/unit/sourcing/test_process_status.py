"""How a process is doing can be seen from outside: also after it has failed."""

from __future__ import annotations

import pytest

import headwater
from account_kit import Deposit, account
from headwater.sourcing import ProcessManager, ProcessStatus, PublishedEvent


def test_the_status_tells_what_is_left_and_the_last_error() -> None:
    broken = [True]

    def react(published: PublishedEvent) -> None:
        if broken and published.event.cents == 2:
            raise OSError("the network is down")

    savings = account("savings")
    process = ProcessManager("watching", reads=savings, react=react)
    with headwater.open("memory:") as log, savings.open(log) as bank, process.open(log) as running:
        assert running.status() == ProcessStatus()
        for cents in (1, 2, 3):
            bank.execute("ada", Deposit(cents))
        assert running.status() == ProcessStatus(0, behind=3)
        with pytest.raises(OSError, match="network"):
            running.catch_up()
        assert running.status() == ProcessStatus(1, 2, "OSError: the network is down")
        broken.clear()
        running.catch_up()
        assert running.status() == ProcessStatus(3, 0, "OSError: the network is down")
