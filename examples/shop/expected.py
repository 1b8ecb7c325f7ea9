"""What the views must hold, in plain Python, from the events alone: neither the log nor Spark is asked.

One thing only the run can tell is which orders came too late to be counted. They are kept in topics
of the log, one for each node that set some aside, and are left out here.
"""

from collections import defaultdict
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

TAX = Decimal("1.19")
PATHS = {
    "spending": ("unique_orders", "spending"),
    "big_orders": ("unique_orders",),
    "invoices": ("unique_orders", "placed_orders", "invoices"),
}
"""The nodes that an order passes on its way to a view; each may set it aside."""


def expected(events, late=None):
    """Return the rows of each view after some events; ``late`` are the orders that each node set aside."""
    events = list(events)
    rows = defaultdict(list)
    for event in events:
        rows[event.topic].append(event.row)
    orders = {view: counted(rows["orders"], path, late or {}) for view, path in PATHS.items()}
    return {
        "gold_customers": gold_customers(rows["customers"]),
        "spending": spending(orders["spending"]),
        "deliveries": deliveries(rows["parcels"]),
        "big_orders": [without(row, "quantity") for row in orders["big_orders"] if row["amount"] >= 500],
        "price_list": price_list(rows["products"]),
        "click_through": click_through(rows["searches"], rows["clicks"]),
        "visits": visits(rows["searches"]),
        "invoices": invoices(orders["invoices"], rows["customers"], rows["taxes"]),
        "timelines": timelines(event for event in events if event.topic in ("reviews", "follows")),
    }


def counted(orders, path, late):
    """Return the orders that no node on a path has set aside, each once."""
    gone = set().union(*(late.get(node, ()) for node in path))
    return {row["order_id"]: row for row in orders if row["order_id"] not in gone}.values()


def set_aside(log):
    """Return the numbers of the orders that came too late, by the node that set them aside."""
    known = {topic.name for topic in log.topics()}
    topics = {node: f"shop.{node}.late" for path in PATHS.values() for node in path}
    late = {node: numbers(log, topic) for node, topic in topics.items() if topic in known}
    if "unique_orders" in late:
        late["unique_orders"] -= numbers(log, "shop.unique_orders")  # where only a copy of it was late
    return late


def numbers(log, topic):
    """Return the numbers of the orders in a topic; what is late for a join is kept with its side."""
    rows = [row for batch in log.read(topic) for row in batch.to_pylist()]
    return {row["order_id"] for row in (row.get("_left") or row for row in rows) if "order_id" in row}


def gold_customers(customers):
    newest = {row["customer"]: row for row in customers}  # they come in the order in which they change
    return [row for row in newest.values() if row["tier"] == "gold"]


def spending(orders):
    totals = {}
    for order in orders:
        row = totals.setdefault(
            order["customer"],
            {"customer": order["customer"], "at": order["at"], "orders": 0, "total": Decimal(0)},
        )
        row["at"] = max(row["at"], order["at"])
        row["orders"] += 1
        row["total"] += order["amount"]
    return list(totals.values())


def deliveries(parcels):
    newest = {}
    for row in sorted(parcels, key=lambda row: row["at"]):
        newest[row["order_id"]] = row
    return list(newest.values())


def price_list(products):
    newest = {row["product"]: row for row in products}  # they come in the order in which they change
    return [{**row, "with_tax": with_tax(row["price"])} for row in newest.values()]


def click_through(searches, clicks):
    clicks_of = defaultdict(list)
    for click in clicks:
        clicks_of[click["session"], click["product"]].append(click["at"])
    counts = defaultdict(lambda: [0, 0])
    for search in searches:
        times = clicks_of[search["session"], search["product"]]
        matches = sum(timedelta() <= at - search["at"] <= timedelta(seconds=10) for at in times)
        count = counts[search["product"], search["at"].replace(second=0, microsecond=0)]
        count[0] += 1
        count[1] += matches > 0
    return [
        {
            "product": product,
            **window(start, timedelta(minutes=1)),
            "found": found,
            "clicked": clicked,
            "rate": clicked / found,
        }
        for (product, start), (found, clicked) in counts.items()
    ]


def visits(searches):
    by_session, gap = defaultdict(list), timedelta(seconds=15)
    for search in sorted(searches, key=lambda row: (row["at"], row["product"])):
        known = by_session[search["session"]]
        if not known or search["at"] - known[-1][-1]["at"] >= gap:
            known.append([])
        known[-1].append(search)
    return [
        {
            "session": session,
            **window(visit[0]["at"], visit[-1]["at"] - visit[0]["at"] + gap),
            "searches": len(visit),
            "first": visit[0]["product"],
        }
        for session, found in by_session.items()
        for visit in found
    ]


def window(start, length):
    return {"window_start": start, "window_end": start + length, "complete": True}


def invoices(orders, customers, taxes):
    made = []
    for order in orders:
        country = valid(customers, "customer", order["customer"], order["at"])["country"]
        rate = valid(taxes, "country", country, order["at"])["rate"]
        tax = (order["amount"] * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
        told = {name: order[name] for name in ("order_id", "amount", "at")}
        made.append({**told, "country": country, "rate": rate, "tax": tax})
    return made


def valid(rows, key, value, at):
    """Return the row of a key that was valid at a time."""
    return max(
        (row for row in rows if row[key] == value and row["since"] <= at), key=lambda row: row["since"]
    )


def timelines(events):
    reviews, follows = {}, set()
    for event in events:
        row = event.row
        if event.topic == "reviews" and event.deleted:
            reviews.pop(row["review_id"], None)
        elif event.topic == "reviews":
            reviews[row["review_id"]] = row
        elif event.deleted:
            follows.discard((row["follower"], row["author"]))
        else:
            follows.add((row["follower"], row["author"]))
    return [
        {**review, "follower": follower}
        for follower, author in follows
        for review in reviews.values()
        if review["author"] == author
    ]


def with_tax(price):
    return (price * TAX).quantize(Decimal("0.01"), ROUND_HALF_UP)


def without(row, column):
    return {name: value for name, value in row.items() if name != column}
