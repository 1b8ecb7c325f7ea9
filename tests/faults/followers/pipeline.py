"""Views and followers of captured tables, as ``headwater run`` loads them; the environment says where.

A view of a table, a join of two, a search index, a warehouse, tables in SQLite and in the server that is
killed, and a cache where there is a Redis server.
"""

import os
from pathlib import Path

from headwater import Pipeline, joins
from headwater.pipeline import targets

ROOT = Path(os.environ["FOLLOWERS_ROOT"])
DATABASE, REDIS = os.environ["FOLLOWERS_DATABASE"], os.environ["FOLLOWERS_REDIS"]

bank = Pipeline("bank", log=f"file:{ROOT / 'log'}")
bank.table(
    "accounts",
    "id BIGINT, balance BIGINT, rate DECIMAL(20,2), note STRING, committed_at TIMESTAMP",
    key="id",
    event_time="committed_at",
)
bank.table(
    "people",
    "id BIGINT, name STRING, account BIGINT, bio STRING, committed_at TIMESTAMP",
    key="id",
    event_time="committed_at",
)
bank.table(
    "moves",
    "id BIGINT, account BIGINT, amount BIGINT, committed_at TIMESTAMP",
    key="id",
    event_time="committed_at",
)


@bank.view(key="id")
def balances(accounts):
    """Accounts as they are."""
    return accounts.drop("committed_at")


@bank.view(key="id")
def holders(people, accounts):
    """People with the balance of their account."""
    balance = accounts.select("id", "balance", "_deleted")
    return people.drop("bio", "committed_at").transform(joins.tables(balance, on={"account": "id"}))


@bank.sink(targets.search(f"file:{ROOT / 'index'}", key="id", text=["name"]))
def found(people):
    """People by name."""
    return people.drop("committed_at")


@bank.sink(targets.warehouse(ROOT / "warehouse", key="id"))
def kept(accounts):
    """Accounts, and what they were."""
    return accounts.drop("committed_at")


@bank.sink(targets.sqlite(ROOT / "moves.db", "moves", "id"))
def copied(moves):
    """Moves, elsewhere."""
    return moves.drop("committed_at")


@bank.sink(targets.postgres(DATABASE, "people_copy", "id"))
def mirrored(people):
    """People once more, in the server that dies with its source."""
    return people.drop("committed_at")


if REDIS:

    @bank.sink(targets.cache(REDIS, "id", prefix="person:"))
    def cached(people):
        """People by number."""
        return people.drop("bio", "committed_at")
