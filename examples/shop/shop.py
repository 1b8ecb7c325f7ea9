"""A small web shop: its views are kept right while orders, searches, parcels and prices come in.

python crm.py              makes the customers' database, ./crm.db
headwater run shop.py      keeps the views, on the log in ./data
python feed.py             makes the events
headwater verify shop.py   computes everything again from the log, and compares
"""

from pyspark.sql import functions as F

from headwater import Pipeline, agg, dedup, joins, latest, scan, windows

shop = Pipeline("shop", log="file:./data")

shop.source(
    "orders",
    "order_id BIGINT, customer STRING, product STRING, quantity INT, amount DECIMAL(10,2), at TIMESTAMP",
    key="customer",
    event_time="at",
    lateness="2 seconds",  # how long an order is waited for after its time
)
shop.source("parcels", "order_id BIGINT, status STRING, at TIMESTAMP", key="order_id", event_time="at")
shop.source(
    "searches",
    "search_id BIGINT, session STRING, product STRING, at TIMESTAMP",
    event_time="at",
    lateness="5 seconds",
)
shop.source("clicks", "session STRING, product STRING, at TIMESTAMP", event_time="at", lateness="5 seconds")
shop.table("products", "product STRING, price DECIMAL(10,2), since TIMESTAMP", key="product")
shop.capture("crm", "sqlite:./crm.db")
shop.table(
    "customers",
    "customer STRING, country STRING, tier STRING, since TIMESTAMP",
    key="customer",
    event_time="since",  # when it holds, not when it was committed
    lateness="1 second",
    captured="crm.customers",
)
shop.table("taxes", "country STRING, rate DECIMAL(4,3), since TIMESTAMP", key="country", event_time="since")
shop.table("reviews", "review_id BIGINT, author STRING, product STRING, at TIMESTAMP", key="review_id")
shop.table("follows", "follower STRING, author STRING", key="follower, author")


@shop.view(key="customer")
def gold_customers(customers):
    """Customers who are gold now."""
    return customers.filter("tier = 'gold'")


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


@shop.stream()
def search_outcomes(searches, clicks):
    """Each search with its clicks within ten seconds, or none."""
    return searches.transform(
        joins.within(clicks, on="session, product", after="10 seconds", how="left", prefix="click_")
    )


@shop.view(key="product, window_start")
def click_through(search_outcomes):
    """How many of the searches that found a product were followed by a click, minute by minute."""
    clicked = F.when(F.col("click_at").isNotNull(), F.col("search_id"))
    counted = search_outcomes.withColumn("clicked", clicked).transform(
        windows.tumbling(
            "1 minute", by="product", found=agg.distinct("search_id"), clicked=agg.distinct("clicked")
        )
    )
    return counted.withColumn("rate", F.col("clicked") / F.col("found"))


@shop.view(key="session, window_start")
def visits(searches):
    """Searches of one session that follow each other within 15 seconds."""
    return searches.transform(
        windows.session(
            "15 seconds",
            by="session",
            searches=agg.count(),
            first=agg.first("product"),
            late="correct",
            keep="1 hour",
        )
    )


@shop.stream(key="order_id")
def placed_orders(unique_orders, customers):
    """Each order with the country in which its customer lived when it was placed."""
    return unique_orders.transform(joins.as_of(customers, on="customer")).drop("version_at", "tier")


@shop.view(key="order_id")
def invoices(placed_orders, taxes):
    """Each order with the tax of the day of sale."""
    taxed = placed_orders.transform(joins.as_of(taxes, on="country"))
    return taxed.selectExpr(
        "order_id", "country", "amount", "rate", "CAST(amount * rate AS DECIMAL(10,2)) AS tax", "at"
    )


@shop.view(key="follower, review_id", order="at")
def timelines(reviews, follows):
    """For each customer the reviews by those whom the customer follows."""
    return reviews.transform(joins.tables(follows, on="author"))
