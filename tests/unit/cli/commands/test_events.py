from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Run

from account_kit import Deposit, Withdraw, account
from headwater.sourcing import unique

FILE = "from account_kit import account as made\naccount = made()\n"


def test_the_history_of_an_aggregate_is_shown_with_the_state_after_each_event(
    run: Run, tmp_path: Path
) -> None:
    url, file = f"file:{tmp_path / 'log'}", tmp_path / "my_accounts.py"
    file.write_text(FILE)
    with account().open(url) as bank:
        bank.execute("ada", Deposit(500), request_id="r1")
        bank.execute("ada", Withdraw(200))
    shown = run("events", "ada", "--decider", str(file), "--log", url).stdout.splitlines()
    assert "Deposited(cents=500)" in shown[-2] and shown[-2].rstrip().endswith("500")
    assert "Withdraw" in shown[-1] and shown[-1].rstrip().endswith("300")
    lines = run(
        "events", "ada", "--decider", str(file), "--format", "ndjson", "--log", url
    ).stdout.splitlines()
    told = json.loads(lines[0])
    assert (told["event"], told["fields"], told["request_id"], told["state"]) == (
        "Deposited", {"cents": 500}, "r1", "500",
    )  # fmt: skip
    missing = run("events", "bob", "--decider", str(file), "--log", url)
    assert missing.exit_code == 2 and 'nothing has happened to "bob"' in missing.stderr


def test_the_claims_of_a_unique_value_are_shown(run: Run, tmp_path: Path) -> None:
    url, file = f"file:{tmp_path / 'log'}", tmp_path / "my_names.py"
    file.write_text('from headwater.sourcing import unique\nusernames = unique("username")\n')
    with unique("username").open(url) as names:
        names.claim("ada", owner="user-1")
        names.release("ada", owner="user-1")
    shown = run("events", "ada", "--decider", str(file), "--log", url).stdout.splitlines()
    assert "Claimed(owner='user-1')" in shown[-2] and "ClaimReleased" in shown[-1]
