"""What happens in the shop, as its producers tell it; the same seed gives the same events.

python feed.py                  as it happens, until Ctrl-C
python feed.py --events 20000   so many at once, into a new log; then the shop closes

Everything goes to the log, but for customers: these are written to their database, where they live (crm.py).

The producers are not perfect. Each of those that take orders sends one again when it hears no answer,
the app is offline at times and tells of its orders late, and news of a parcel overtake each other. The
clock of the kiosk is two hours ahead, which is corrected before its searches are written.
"""

import argparse
import heapq
import random
import sys
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count, groupby, islice
from typing import NamedTuple

from crm import Crm

import headwater
from headwater import clock

OPENING = datetime(2026, 1, 1, 8, tzinfo=UTC)
"""When the shop opens that is told of all at once."""
ORDERS_A_SECOND = 50
PRICES = {"tea": 7, "coffee": 12, "mug": 9, "kettle": 39, "scale": 59, "grinder": 129, "machine": 649}
WEIGHTS = (30, 30, 20, 8, 6, 4, 2)
CUSTOMERS = ("ada", "ben", "cleo", "dan", "eva", "finn", "gus", "hana", "ida", "jon", "kim", "lea", "max")
COPIES, OFFLINE = 0.05, 0.01
"""Parts of the orders: those that are sent twice, those that are made where there is no network."""
PARCEL = (("packed", "warehouse", 2), ("sent", "warehouse", 4), ("delivered", "carrier", 15))
"""What becomes of an order, who says so, and after about how many seconds."""
SESSIONS, VISITS = 40, 600
"""Visitors at a time, and the orders after which others come."""
COUNTRIES = {"de": 190, "fr": 200, "it": 220}
"""Where customers live, and the tax there in thousandths."""
TIERS = ("silver", "silver", "gold")
AHEAD = timedelta(hours=2)
"""How far the clock of the kiosk is ahead."""
TICK, BATCH = 0.2, 1000
TOUCH = timedelta(seconds=1)
"""How often the database of the customers is told how late it is."""


class Event(NamedTuple):
    """A row of a topic; ``sent`` is when the log hears of it, the row says when it happened."""

    sent: datetime
    topic: str
    producer: str
    row: dict
    deleted: bool = False
    """Whether the row, which is a key then, is gone from its table."""


def events(start=OPENING, seed=0, first=1):
    """Yield what happens, in the order in which the log hears of it. It never ends."""
    chance, prices, people, waiting, number = random.Random(seed), dict(PRICES), {}, [], count()

    def send(*coming):
        for event in coming:
            heapq.heappush(waiting, (event.sent, next(number), event))

    send(*(price(product, prices, start) for product in prices))
    send(*(tax(country, COUNTRIES[country], start) for country in COUNTRIES))
    send(*(customer(name, people, chance, start) for name in CUSTOMERS))
    for order_id in count(first):
        now = start + timedelta(seconds=(order_id - first) / ORDERS_A_SECOND)
        send(*order(order_id, prices, now, chance), *parcel(order_id, now, chance))
        send(*search(order_id, now, chance), *talk(order_id, now, chance))
        if chance.random() < 1 / ORDERS_A_SECOND:
            send(customer(chance.choice(CUSTOMERS), people, chance, now))
        if chance.random() < 0.1 / ORDERS_A_SECOND:
            country = chance.choice(list(COUNTRIES))
            send(tax(country, COUNTRIES[country] + chance.randint(-20, 20), now))
        if chance.random() < 1 / ORDERS_A_SECOND:
            product = chance.choice(list(prices))
            prices[product] = PRICES[product] + chance.randint(-2, 5)
            send(price(product, prices, now))
        while waiting and waiting[0][0] <= now:
            yield heapq.heappop(waiting)[-1]


def order(order_id, prices, now, chance):
    """Return an order: sent at once, or when the network is back, or twice."""
    producer = chance.choice(("web", "app", "till"))
    [product] = chance.choices(list(prices), WEIGHTS)
    quantity = min(9, 1 + int(chance.expovariate(1)))
    row = {
        "order_id": order_id,
        "customer": chance.choice(CUSTOMERS),
        "product": product,
        "quantity": quantity,
        "amount": Decimal(quantity * prices[product]).quantize(Decimal("0.01")),
        "at": now,
    }
    offline = producer == "app" and chance.random() < 3 * OFFLINE  # the app has a third of the orders
    delays = [chance.uniform(20, 40) if offline else chance.uniform(0, 0.5)]
    if chance.random() < COPIES:
        delays.append(delays[0] + chance.uniform(0.5, 3))
    return [Event(now + timedelta(seconds=delay), "orders", producer, row) for delay in delays]


def parcel(order_id, now, chance):
    """Return the news of a parcel; each may take its time to be told."""
    told = []
    for status, producer, after in PARCEL:
        at = now + timedelta(seconds=after * chance.uniform(0.8, 1.2))
        row = {"order_id": order_id, "status": status, "at": at}
        told.append(Event(at + timedelta(seconds=chance.uniform(0, 4)), "parcels", producer, row))
    return told


def price(product, prices, now):
    """Return the price of a product from now on."""
    row = {"product": product, "price": Decimal(prices[product]), "since": now}
    return Event(now, "products", "office", row)


def tax(country, rate, now):
    """Return the tax of a country from now on."""
    return Event(now, "taxes", "office", {"country": country, "rate": Decimal(rate) / 1000, "since": now})


def customer(name, people, chance, now):
    """Return where a customer lives and how dear the customer is from now on: one of them has changed."""
    before = people.get(name, {"country": chance.choice(list(COUNTRIES)), "tier": "silver"})
    what, values = chance.choice((("country", list(COUNTRIES)), ("tier", TIERS)))
    people[name] = {**before, what: chance.choice(values)}
    return Event(now, "customers", "office", {"customer": name, **people[name], "since": now})


def search(number, now, chance):
    """Return a search, and perhaps a click, which may be told before the search."""
    if chance.random() < 0.5:
        return []
    session = f"s{number // VISITS}-{chance.randrange(SESSIONS)}"
    where = {"session": session, "product": chance.choice(list(PRICES))}
    row = {"search_id": number, **where, "at": now}
    sent = now + timedelta(seconds=chance.uniform(0, 3))
    told = [Event(sent, "searches", "web", row)]
    if number % 9 == 0:
        told = [Event(sent, "searches", "kiosk", {**row, "at": corrected(now, sent)})]
    if chance.random() < 0.4:
        at = now + timedelta(seconds=chance.uniform(0, 14))
        told.append(Event(at + timedelta(seconds=chance.uniform(0, 1)), "clicks", "web", {**where, "at": at}))
    return told


def corrected(now, sent):
    """Return when something happened at the kiosk, which knows only the time by its own clock."""
    return clock.correct(now + AHEAD, sent + AHEAD, sent).at


def talk(number, now, chance):
    """Return a review, one that is taken back, or somebody who follows somebody, or does so no longer."""
    what, author = chance.random(), chance.choice(CUSTOMERS)
    if what < 0.02:
        row = {"review_id": number, "author": author, "product": chance.choice(list(PRICES)), "at": now}
        return [Event(now, "reviews", "web", row)]
    if what < 0.025:
        return [Event(now, "reviews", "web", {"review_id": chance.randint(1, number)}, deleted=True)]
    if what < 0.035:
        pair = {"follower": chance.choice(CUSTOMERS), "author": author}
        return [Event(now, "follows", "web", pair, deleted=chance.random() < 0.3)]
    return []


class Outlets(ExitStack):
    """A producer for each that writes to a topic, and the database of the customers."""

    def __init__(self, log, crm):
        super().__init__()
        self._log, self._open, self.count = log, {}, 0
        self._crm, self._touched = self.enter_context(closing(Crm(crm))), OPENING

    def write(self, some):
        """Append events, batch by batch, and say how many there have been."""
        outlets = defaultdict(list)
        for event in some:
            outlets[event.topic, event.producer].append(event)
        self._crm.write(event.row for event in outlets.pop(("customers", "office"), ()))
        for outlet, told in outlets.items():
            if outlet not in self._open:
                self._open[outlet] = self.enter_context(self._log.producer(outlet[0], id=outlet[1]))
            for deleted, run in groupby(told, key=lambda event: event.deleted):
                self._append(self._open[outlet], [event.row for event in run], deleted)
        for outlet in outlets:
            self._open[outlet].flush()
        self.count += len(some)

    def _append(self, producer, rows, deleted):
        if not deleted:
            producer.send_batch(rows)
            return
        for key in rows:
            producer.delete(key)

    def tell_time(self, now):
        """Promise, for tables that change rarely, that nothing comes from before now."""
        for (topic, _), producer in self._open.items():
            if topic == "taxes":
                producer.mark(now)
        if now >= self._touched + TOUCH:
            self._crm.touch(now)
            self._touched = now

    def close_shop(self, last):
        """Promise that nothing more comes of these minutes: each window that has begun is complete then."""
        end = last + timedelta(minutes=2)
        for (topic, _), producer in self._open.items():
            if topic not in ("products", "reviews", "follows"):  # which have no event time
                producer.mark(end)
        self._crm.touch(end)


def at_once(log, crm, number, seed):
    """Write so many events, then close the shop."""
    if log.describe("orders").records:
        sys.exit("error: the log has orders already\nhint: --events is for a new log; run it without")
    coming, last = islice(events(seed=seed), number), OPENING
    with Outlets(log, crm) as outlets:
        while some := list(islice(coming, BATCH)):
            outlets.write(some)
            last = some[-1].sent
            print(outlets.count, flush=True)
        outlets.close_shop(last)


def live(log, crm, seed):
    """Write events as they happen, beginning with those of the last half minute."""
    start = datetime.now(UTC) - timedelta(seconds=30)
    coming = events(start, seed, first=1 + log.describe("orders").records)
    with Outlets(log, crm) as outlets:
        ahead = next(coming)
        while True:
            some, now = [], datetime.now(UTC)
            while ahead.sent <= now:
                some.append(ahead)
                ahead = next(coming)
            outlets.write(some)
            outlets.tell_time(now)
            print(outlets.count, flush=True)
            time.sleep(TICK)


def main():
    parser = argparse.ArgumentParser(description="Makes the events of the shop.")
    parser.add_argument("--log", default="file:./data", help="the log (file:./data)")
    parser.add_argument("--crm", default="crm.db", help="the customers' database (crm.db)")
    parser.add_argument("--events", type=int, metavar="N", help="write N events at once, and end")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other events (0)")
    options = parser.parse_args()
    try:
        with headwater.open(options.log) as log:
            if options.events is None:
                live(log, options.crm, options.seed)
            else:
                at_once(log, options.crm, options.events, options.seed)
    except headwater.HeadwaterError as error:
        sys.exit(f"error: {error}")
    except (KeyboardInterrupt, BrokenPipeError):
        sys.stdout = None  # nobody listens any more


if __name__ == "__main__":
    main()
