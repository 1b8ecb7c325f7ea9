"""The examples of the book, each against what it must give, in plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.pipeline.loading import load
from headwater.testing.harness import Harness

BOOK = Path(__file__).parents[2] / "examples" / "book"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def shuffled(rows: list[Row], chance: random.Random, parts: int) -> list[list[Row]]:
    """Return rows in another order, in some parts."""
    mixed = chance.sample(rows, len(rows))
    cut = sorted(chance.sample(range(len(rows) + 1), parts - 1))
    return [mixed[start:end] for start, end in zip([0, *cut], [*cut, len(rows)], strict=True)]


@pytest.fixture
def chance() -> random.Random:
    return random.Random(11)


def test_click_through(spark: SparkSession, chance: random.Random) -> None:
    searches = [
        {"id": n, "session": f"s{n % 7}", "query": "tea", "url": f"u{n % 3}", "at": at(20 * n)}
        for n in range(40)
    ]
    clicks = [
        {
            "session": row["session"],
            "url": row["url"],
            "at": row["at"] + timedelta(minutes=chance.randint(1, 90)),
        }
        for row in chance.sample(searches, 15)
    ]
    with Harness(load(str(BOOK / "click_through.py")), spark=spark) as harness:
        for name, rows in (("clicks", clicks), ("searches", searches)):
            for part in shuffled(rows, chance, 2):
                harness.send(name, part)
                harness.step()
        harness.advance(at(86_400))
        harness.step()
        found = {
            (row["url"], row["window_start"]): (row["shown"], row["clicked"])
            for row in harness.view("click_through")
        }
        harness.verify()
    expected: dict[tuple[str, datetime], list[int]] = defaultdict(lambda: [0, 0])
    for search in searches:
        matches = sum(
            (click["session"], click["url"]) == (search["session"], search["url"])
            and timedelta() <= click["at"] - search["at"] <= timedelta(hours=1)
            for click in clicks
        )
        shown = expected[search["url"], search["at"].replace(second=0)]
        shown[0] += 1
        shown[1] += matches > 0
    assert found == {key: tuple(counts) for key, counts in expected.items()}


def test_profiles(spark: SparkSession) -> None:
    with Harness(load(str(BOOK / "profiles.py")), spark=spark) as harness:
        harness.send(
            "users", [{"id": 1, "name": "ada", "country": "it"}, {"id": 2, "name": "bob", "country": "no"}]
        )
        harness.step()
        harness.send("activity", [{"user": n, "page": "/", "at": at(n)} for n in (1, 2, 3)])
        harness.step()
        harness.send("users", {"id": 2, "name": "bob", "country": "se"})
        harness.step()
        harness.send("activity", {"user": 2, "page": "/", "at": at(9)})
        harness.step()
        told = [(row["user"], row["name"], row["country"]) for row in harness.stream("enriched")]
    assert sorted(told, key=str) == [(1, "ada", "it"), (2, "bob", "no"), (2, "bob", "se"), (3, None, None)]


def test_invoices(spark: SparkSession, chance: random.Random) -> None:
    rates = [
        {"country": country, "rate": Decimal(rate) / 1000, "since": at(since)}
        for country, since, rate in (("de", 0, 190), ("de", 500, 160), ("fr", 100, 200), ("de", 800, 190))
    ]
    sales = [
        {"id": n, "country": chance.choice(["de", "fr"]), "amount": Decimal(100 + n), "at": at(n * 10)}
        for n in range(100)
    ]
    with Harness(load(str(BOOK / "invoices.py")), spark=spark) as harness:
        for part, new in zip(
            shuffled(sales, chance, 4), ([rates[0]], rates[1:3], [], rates[3:]), strict=True
        ):
            harness.send("sales", part)
            harness.send("rates", new)
            harness.step()
        harness.advance(at(10_000))
        harness.step()
        found = {row["id"]: row["tax"] for row in harness.view("invoices")}
        harness.verify()

    def tax(sale: Row) -> Decimal | None:
        valid = [r for r in rates if r["country"] == sale["country"] and r["since"] <= sale["at"]]
        return (
            (sale["amount"] * max(valid, key=lambda r: r["since"])["rate"]).quantize(Decimal("0.01"))
            if valid
            else None
        )

    assert found == {sale["id"]: tax(sale) for sale in sales}


def test_timelines(spark: SparkSession, chance: random.Random) -> None:
    posts: dict[int, Row] = {}
    follows: set[tuple[str, str]] = set()
    people = ["ada", "bob", "cyd", "dan"]
    with Harness(load(str(BOOK / "timelines.py")), spark=spark) as harness:
        for step in range(4):
            for _ in range(15):
                number, pair = chance.randint(0, 20), (chance.choice(people), chance.choice(people))
                if chance.random() < 0.2:
                    harness.delete("posts", number)
                    posts.pop(number, None)
                elif chance.random() < 0.6:
                    posts[number] = {
                        "id": number,
                        "author": chance.choice(people),
                        "text": "hi",
                        "at": at(number),
                    }
                    harness.send("posts", posts[number])
                elif pair in follows:
                    harness.delete("follows", pair)
                    follows.discard(pair)
                else:
                    harness.send("follows", {"follower": pair[0], "author": pair[1]})
                    follows.add(pair)
            harness.step()
            found = {(row["follower"], row["id"]): row["author"] for row in harness.view("timelines")}
            assert found == {
                (follower, number): author
                for follower, author in follows
                for number, post in posts.items()
                if post["author"] == author
            }, step
        newest = harness._runner.store.view("timelines").scan(
            prefix="ada", order="at", descending=True, limit=3
        )
        times = [row["at"] for row in newest.to_pylist()]
        assert times == sorted(times, reverse=True)[:3]
        harness.verify()


def test_devices(spark: SparkSession, chance: random.Random) -> None:
    off = {"right": 0.0, "slow": -3600.0, "fast": 7200.0}
    rows, expected = [], defaultdict[tuple[str, datetime], list[float]](list)
    for n in range(60):
        device, true = chance.choice(list(off)), n * 7.0
        sent = true + chance.uniform(0, 30)
        by_device = {"occurred": at(true + off[device]), "sent": at(sent + off[device]), "received": at(sent)}
        rows.append({"device": device, "value": float(n), **by_device})
        expected[device, at(true).replace(second=0)].append(float(n))
    with Harness(load(str(BOOK / "devices.py")), spark=spark) as harness:
        for part in range(0, 60, 20):
            harness.send("measurements", sorted(rows, key=lambda row: row["received"])[part : part + 20])
            harness.step()
        harness.advance(at(86_400))
        harness.step()
        found = {
            (row["device"], row["window_start"]): (row["n"], row["mean"]) for row in harness.view("by_minute")
        }
    assert found == {
        key: (len(values), pytest.approx(sum(values) / len(values))) for key, values in expected.items()
    }


def test_sessions(spark: SparkSession, chance: random.Random) -> None:
    views = [
        {"user": chance.choice("ab"), "page": f"/{n}", "at": at(chance.randint(0, 20) * 600)}
        for n in range(60)
    ]
    with Harness(load(str(BOOK / "sessions.py")), spark=spark) as harness:
        for part in shuffled(views, chance, 5):
            harness.send("views", part)
            harness.step()
        harness.advance(at(10**6))
        harness.step()
        found = {
            (row["user"], row["window_start"], row["window_end"]): row["pages"]
            for row in harness.view("visits")
        }
        harness.verify()
    expected = {}
    for user in "ab":
        times = sorted(view["at"] for view in views if view["user"] == user)
        groups: list[list[datetime]] = [[times[0]]]
        for one in times[1:]:
            groups[-1].append(one) if one - groups[-1][-1] < timedelta(minutes=30) else groups.append([one])
        for group in groups:
            expected[user, group[0], group[-1] + timedelta(minutes=30)] = len(group)
    assert found == expected
