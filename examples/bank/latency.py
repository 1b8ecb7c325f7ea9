"""What a constraint costs: checked before a withdrawal is a fact, or after it, with an apology.

python examples/bank/latency.py [DIRECTORY]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime

import headwater
from bank import Deposit, Withdraw, Withdrawn, account, apologies, loose_account
from headwater.sourcing.event_schema import Recording

COUNT = 500


def timed(each: Callable[[int], None]) -> list[float]:
    took = []
    for number in range(COUNT):
        began = time.perf_counter()
        each(number)
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


def main(directory: str) -> None:
    with headwater.open(f"file:{directory}") as log:
        with account.open(log) as strict, loose_account.open(log) as loose:
            strict.execute("ada", Deposit(COUNT))
            loose.execute("ada", Deposit(COUNT // 2))
            checked = timed(lambda number: strict.execute("ada", Withdraw(1)) and None)
            with log.producer("loose_account") as producer:

                def send(number: int) -> None:
                    recording = Recording("ada", datetime.now(UTC), "Withdraw", None)
                    producer.send(loose_account.schema.row(Withdrawn(1), recording))

                unchecked = timed(send)
            began = time.perf_counter()
            with apologies.open(log) as process:
                process.catch_up()
            caught_up = time.perf_counter() - began
            overdrawn = loose.state("ada")
        for name, took in (("checked before", checked), ("checked after", unchecked)):
            p50, p99 = took[COUNT // 2], took[COUNT * 99 // 100]
            print(f"{name:15} p50 {p50:7.3f} ms   p99 {p99:7.3f} ms")
        print(f"apologies for what was let through: after {caught_up:.1f} s, balance {overdrawn}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if len(sys.argv) > 1 else temporary)
