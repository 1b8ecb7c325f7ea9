"""What happens in the shop, as six producers tell it; the same seed gives the same events.

python feed.py                  as it happens, until Ctrl-C
python feed.py --events 20000   so many at once, into a new log; then the shop closes

The producers are not perfect. Each of those that take orders sends one again when it hears no answer,
the app is offline at times and tells of its orders late, and news of a parcel overtake each other.
"""

import argparse
import heapq
import random
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count, islice
from typing import NamedTuple

import headwater

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
TICK, BATCH = 0.2, 1000


class Event(NamedTuple):
    """A row of a topic; ``sent`` is when the log hears of it, the row says when it happened."""

    sent: datetime
    topic: str
    producer: str
    row: dict


def events(start=OPENING, seed=0, first=1):
    """Yield what happens, in the order in which the log hears of it. It never ends."""
    chance, prices, waiting, number = random.Random(seed), dict(PRICES), [], count()

    def send(*coming):
        for event in coming:
            heapq.heappush(waiting, (event.sent, next(number), event))

    send(*(price(product, prices, start) for product in prices))
    for order_id in count(first):
        now = start + timedelta(seconds=(order_id - first) / ORDERS_A_SECOND)
        send(*order(order_id, prices, now, chance), *parcel(order_id, now, chance))
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


class Outlets(ExitStack):
    """A producer for each that writes to a topic."""

    def __init__(self, log):
        super().__init__()
        self._log, self._open, self.count = log, {}, 0

    def write(self, some):
        """Append events, batch by batch, and say how many there have been."""
        rows = defaultdict(list)
        for event in some:
            rows[event.topic, event.producer].append(event.row)
        for outlet, batch in rows.items():
            if outlet not in self._open:
                self._open[outlet] = self.enter_context(self._log.producer(outlet[0], id=outlet[1]))
            self._open[outlet].send_batch(batch)
            self.count += len(batch)
        for outlet in rows:
            self._open[outlet].flush()

    def close_shop(self, last):
        """Promise that nothing more comes from before a minute after the last event."""
        for (topic, _), producer in self._open.items():
            if topic != "products":  # which has no event time
                producer.mark(last + timedelta(minutes=1))


def at_once(log, number, seed):
    """Write so many events, then close the shop."""
    if log.describe("orders").records:
        sys.exit("error: the log has orders already\nhint: --events is for a new log; run it without")
    coming, last = islice(events(seed=seed), number), OPENING
    with Outlets(log) as outlets:
        while some := list(islice(coming, BATCH)):
            outlets.write(some)
            last = some[-1].sent
            print(outlets.count, flush=True)
        outlets.close_shop(last)


def live(log, seed):
    """Write events as they happen, beginning with those of the last half minute."""
    start = datetime.now(UTC) - timedelta(seconds=30)
    coming = events(start, seed, first=1 + log.describe("orders").records)
    with Outlets(log) as outlets:
        ahead = next(coming)
        while True:
            some, now = [], datetime.now(UTC)
            while ahead.sent <= now:
                some.append(ahead)
                ahead = next(coming)
            outlets.write(some)
            print(outlets.count, flush=True)
            time.sleep(TICK)


def main():
    parser = argparse.ArgumentParser(description="Makes the events of the shop.")
    parser.add_argument("--log", default="file:./data", help="the log (file:./data)")
    parser.add_argument("--events", type=int, metavar="N", help="write N events at once, and end")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other events (0)")
    options = parser.parse_args()
    try:
        with headwater.open(options.log) as log:
            if options.events is None:
                live(log, options.seed)
            else:
                at_once(log, options.events, options.seed)
    except headwater.HeadwaterError as error:
        sys.exit(f"error: {error}")
    except (KeyboardInterrupt, BrokenPipeError):
        sys.stdout = None  # nobody listens any more


if __name__ == "__main__":
    main()
