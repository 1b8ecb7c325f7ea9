"""What the views must hold, in plain Python, from the events alone: neither the log nor Spark is asked.

One thing only the run can tell is which orders came too late to be counted. They are kept in a topic
of the log, and are left out here.
"""

from decimal import ROUND_HALF_UP, Decimal

TAX = Decimal("1.19")


def expected(events, late=frozenset()):
    """Return the rows of each view after some events; ``late`` are the numbers of orders set aside."""
    rows = {"orders": [], "parcels": [], "products": []}
    for event in events:
        rows[event.topic].append(event.row)
    orders = {row["order_id"]: row for row in rows["orders"] if row["order_id"] not in late}.values()
    return {
        "spending": spending(orders),
        "deliveries": deliveries(rows["parcels"]),
        "big_orders": [without(row, "quantity") for row in orders if row["amount"] >= 500],
        "price_list": price_list(rows["products"]),
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


def with_tax(price):
    return (price * TAX).quantize(Decimal("0.01"), ROUND_HALF_UP)


def without(row, column):
    return {name: value for name, value in row.items() if name != column}
