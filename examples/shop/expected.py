"""What the views must hold, in plain Python, from the events alone: neither the log nor Spark is asked.

One thing only the run can tell is which orders came too late to be counted. They are kept in a topic
of the log, and are left out here.
"""

from collections import defaultdict
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

TAX = Decimal("1.19")


def expected(events, late=frozenset()):
    """Return the rows of each view after some events; ``late`` are the numbers of orders set aside."""
    events = list(events)
    rows = defaultdict(list)
    for event in events:
        rows[event.topic].append(event.row)
    orders = {row["order_id"]: row for row in rows["orders"] if row["order_id"] not in late}.values()
    return {
        "spending": spending(orders),
        "deliveries": deliveries(rows["parcels"]),
        "big_orders": [without(row, "quantity") for row in orders if row["amount"] >= 500],
        "price_list": price_list(rows["products"]),
        "click_through": click_through(rows["searches"], rows["clicks"]),
        "visits": visits(rows["searches"]),
        "invoices": invoices(orders, rows["customers"], rows["taxes"]),
        "timelines": timelines(event for event in events if event.topic in ("reviews", "follows")),
    }


def set_aside(log):
    """Return the numbers of the orders that came too late: told of, and not among the unique ones."""
    topics = {topic.name for topic in log.topics()}
    if "shop.unique_orders.late" not in topics:
        return set()
    return numbers(log, "shop.unique_orders.late") - numbers(log, "shop.unique_orders")


def numbers(log, topic):
    return {number for batch in log.read(topic) for number in batch["order_id"].to_pylist()}


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
