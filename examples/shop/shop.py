"""A small web shop: four views, kept right while orders, parcels and prices come in.

headwater run shop.py      keeps them, on the log in ./data
python feed.py             makes the events
headwater verify shop.py   computes everything again from the log, and compares
"""

from pyspark.sql import functions as F

from headwater import Pipeline, dedup, latest, scan

shop = Pipeline("shop", log="file:./data")

shop.source(
    "orders",
    "order_id BIGINT, customer STRING, product STRING, quantity INT, amount DECIMAL(10,2), at TIMESTAMP",
    key="customer",
    event_time="at",
    lateness="2 seconds",  # how long an order is waited for after its time
)
shop.source("parcels", "order_id BIGINT, status STRING, at TIMESTAMP", key="order_id", event_time="at")
shop.table("products", "product STRING, price DECIMAL(10,2), since TIMESTAMP", key="product")


@shop.stream(key="customer")
def unique_orders(orders):
    """Each order once, however often it was sent."""
    return orders.transform(dedup(on="order_id", within="10 seconds"))


def add(before, order):
    before = before or {"orders": 0, "total": 0}
    return {"orders": before["orders"] + 1, "total": before["total"] + order["amount"]}


@shop.view(key="customer")
def spending(unique_orders):
    """What each customer has spent."""
    return unique_orders.transform(scan(add, by="customer", schema="orders BIGINT, total DECIMAL(12,2)"))


@shop.view(key="order_id")
def deliveries(parcels):
    """Where each order is now."""
    return parcels.transform(latest(by="order_id"))


@shop.view(key="order_id")
def big_orders(unique_orders):
    """Orders of 500 and more."""
    return unique_orders.filter(F.col("amount") >= 500).drop("quantity")


@shop.view(key="product")
def price_list(products):
    """What everything costs."""
    return products.withColumn("with_tax", F.expr("CAST(price * 1.19 AS DECIMAL(10,2))"))
