from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater
from account_kit import Deposit, Deposited, account, evolve
from headwater.errors import SchemaError, TopicError, UsageError


@dataclass
class Thawed:
    cents: int


def test_a_declaration_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(TopicError, match="decider name"):
        account("no/name")
    with pytest.raises(SchemaError, match="command of decider"):
        account(commands=[Thawed])
    with pytest.raises(UsageError, match="no setting"):
        account(partition=3)


def test_the_fingerprint_changes_with_the_fold_and_with_nothing_else() -> None:
    assert account().fingerprint == account("other", snapshot_every=5).fingerprint
    changed = account(evolve=lambda balance, event: evolve(balance, event) + 1)
    assert account().fingerprint != changed.fingerprint


def test_a_log_that_is_given_stays_open_and_one_that_is_named_is_closed(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        with account().open(log) as bank:
            bank.execute("ada", Deposit(5))
        assert log.describe("account").records == 1
    with account().open(f"file:{tmp_path / 'log'}") as bank:
        assert list(bank.events("ada")) == [Deposited(5)]
