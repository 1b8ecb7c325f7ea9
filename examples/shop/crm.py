"""The shop's customers, in a database of another application: plain SQL, and nothing of Headwater.

python crm.py      makes ./crm.db with a table of customers that is empty, if it is not there
"""

import sqlite3

TABLE = (
    "CREATE TABLE IF NOT EXISTS customers (customer TEXT PRIMARY KEY, country TEXT, tier TEXT, since TEXT)"
)
WRITE = """
INSERT INTO customers (customer, country, tier, since) VALUES (:customer, :country, :tier, :since)
ON CONFLICT (customer) DO UPDATE SET country = excluded.country, tier = excluded.tier, since = excluded.since
"""
HOUSE = "the shop"
"""Its own row: it is touched so that everybody who reads the table knows how far it is."""


class Crm:
    """The database, for those who write to it."""

    def __init__(self, file="crm.db"):
        self._db = sqlite3.connect(file, timeout=30)
        with self._db:
            self._db.execute(TABLE)

    def write(self, customers):
        """Write rows, new ones and new versions, in one transaction."""
        with self._db:
            self._db.executemany(WRITE, ({**row, "since": row["since"].isoformat()} for row in customers))

    def touch(self, now):
        """Write that nothing comes any more that holds from before now."""
        self.write([{"customer": HOUSE, "country": None, "tier": None, "since": now}])

    def close(self):
        self._db.close()


if __name__ == "__main__":
    Crm().close()
