"""Invoices with the tax rate of the day of sale: rates change, and old sales keep their rate.

Computed again next year, from the log, every invoice is the same: which rate was valid is decided by
when the sale happened, and not by when it is computed.
"""

from pyspark.sql import functions as F

from headwater import Pipeline, joins

books = Pipeline("invoices", log="file:./data")
books.source(
    "sales",
    "id BIGINT, country STRING, amount DECIMAL(12,2), at TIMESTAMP",
    event_time="at",
    lateness="1 hour",
)
books.table("rates", "country STRING, rate DECIMAL(4,3), since TIMESTAMP", key="country", event_time="since")


@books.view(key="id")
def invoices(sales, rates):
    """Each sale with the rate that was valid at its time, and since when that was so."""
    taxed = sales.transform(joins.as_of(rates, on="country"))
    return taxed.withColumn("tax", F.expr("CAST(amount * rate AS DECIMAL(12,2))"))
