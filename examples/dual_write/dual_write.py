"""Two clients, one database, one cache: what is left when each writes to both, and when the cache follows.

python dual_write.py      shows both, in about half a minute; no server is needed

Ann and Ben set the price of the same items, at the same time. A barrier makes them do for each item what
happens to any application sooner or later: Ann is held up between her two writes.

        database        cache
Ann     1 ─┐
Ben        2            3           his price is in both
Ann                     4           hers is in the cache, for ever
"""

import sqlite3
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import headwater
from headwater import Pipeline
from headwater.pipeline import targets

ITEMS = ("tea", "mug", "kettle", "grinder", "machine")
UPSERT = "INSERT INTO prices VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET price = excluded.price"


def ann(item, write, barrier):
    write["database"](item, f"{len(item)}.10 by Ann")
    barrier.wait()  # held up: a slow network, a collection of garbage, a restart
    barrier.wait()
    write["cache"](item, f"{len(item)}.10 by Ann")


def ben(item, write, barrier):
    barrier.wait()
    write["database"](item, f"{len(item)}.90 by Ben")
    write["cache"](item, f"{len(item)}.90 by Ben")
    barrier.wait()


def work(write):
    """Let both clients set the price of every item, side by side."""
    for item in ITEMS:
        barrier = threading.Barrier(2)
        clients = [threading.Thread(target=client, args=(item, write, barrier)) for client in (ann, ben)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()


def dual_writes(folder):
    """Each client writes to the database and then to the cache. Return what both hold at the end."""
    database, cache = new(folder / "shop.db"), new(folder / "cache.db")
    work({"database": writer(database), "cache": writer(cache)})
    return prices(database), prices(cache)


def captured(folder):
    """The same clients write to the database alone, and the cache follows. Return what both hold."""
    database, cache = new(folder / "shop.db"), folder / "cache.db"
    shop = Pipeline("prices", log=f"file:{folder / 'data'}")
    shop.capture("shop", f"sqlite:{database}")
    shop.table("prices", "item STRING, price STRING", key="item", captured="shop.prices")

    @shop.sink(targets.sqlite(cache, "prices", key="item"))  # or targets.cache("redis://localhost", …)
    def cached_prices(prices):
        """The price of each item, as the database has committed it last."""
        return prices.drop("committed_at")

    headwater.run(shop, until_caught_up=True)  # from here on every change is captured
    work({"database": writer(database), "cache": lambda item, price: None})
    headwater.run(shop, until_caught_up=True)  # `headwater run` would have gone on meanwhile
    with headwater.open_views(cache) as views:
        return prices(database), {row["item"]: row["price"] for row in views["prices"].scan().to_pylist()}


def new(file):
    """Make a file with a table of prices."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE prices (item TEXT PRIMARY KEY, price TEXT)")
    return file


def writer(file):
    """Return what sets a price in a file, in a transaction of its own."""

    def write(item, price):
        with closing(sqlite3.connect(file, timeout=30)) as db, db:
            db.execute(UPSERT, (item, price))

    return write


def prices(file):
    with closing(sqlite3.connect(file)) as db:
        return dict(db.execute("SELECT item, price FROM prices"))


def show(title, database, cache):
    """Print both, and return how many items differ."""
    different = [item for item in ITEMS if database[item] != cache[item]]
    print(f"{title}\n\n  {'item':10}{'database':16}cache")
    for item in ITEMS:
        print(f"  {item:10}{database[item]:16}{cache[item]}{'   differs' * (item in different)}")
    end = ", for ever: nothing will write them again" if different else ""
    print(f"\n  {len(different)} of {len(ITEMS)} items differ{end}\n", flush=True)
    return len(different)


def main(folder):
    dual = show("Each client writes to the database, then to the cache:", *dual_writes(folder / "dual"))
    print("starting Spark, which takes some seconds …\n", file=sys.stderr)
    follows = show(
        "Clients write to the database, and the cache follows its changes:", *captured(folder / "captured")
    )
    return dual, follows


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
