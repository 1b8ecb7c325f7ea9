"""One part of a pipeline in full: the text that declares it, and how late rows come."""

from __future__ import annotations

from pathlib import Path

import headwater
from headwater.api.figures.node_details import histogram, node_details, source_text
from headwater.api.figures.topic_details import recent_lateness

FILE = '''
from headwater import Pipeline

shop = Pipeline("details")
shop.source(
    "orders",
    "id BIGINT",
)
shop.sql("large", "SELECT * FROM orders", key="id")


@shop.view(key="id")
def seen(orders):
    """Orders."""
    return orders
'''


def test_the_text_that_declares_something_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "details_shop.py").write_text(FILE)
    shop = headwater.load(tmp_path / "details_shop.py")
    assert source_text(shop["orders"]) == 'shop.source(\n    "orders",\n    "id BIGINT",\n)'
    assert source_text(shop["large"]) == 'shop.sql("large", "SELECT * FROM orders", key="id")'
    assert (source_text(shop["seen"]) or "").startswith('@shop.view(key="id")\ndef seen(orders):')
    [orders, large, _] = headwater.overview(shop).nodes
    details = node_details(shop, orders)
    assert (details.file, details.line, details.downstreams) == ("details_shop.py", 5, ("large", "seen"))
    told = details.to_dict()
    assert (told["lateness"], told["deliveries"]) == (None, None)
    assert told["accounting"] == {"rows": 0, "used": 0, "late": 0, "duplicates": 0, "dead": 0}
    assert (details.operations, details.target) == ((), None)
    assert node_details(shop, large).downstreams == ()
    assert node_details(shop, large).operations == ("verify", "rebuild", "reset")


def test_the_counts_of_a_histogram_are_all_rows() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "at TIMESTAMP", event_time="at")
        with log.producer("orders", id="till") as producer:
            for second in (0, 100, 99, 50, 100, 0):
                producer.send_batch([{"at": second * 1_000_000}])
                producer.flush()
        found = histogram(recent_lateness(log, "orders"))
    assert len(found.counts) == len(found.bounds) + 1
    assert sum(found.counts) == 6
    assert [bound for bound, count in zip(found.bounds, found.counts, strict=False) if count] == [
        0,
        1,
        60,
        300,
    ]
