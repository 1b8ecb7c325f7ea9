"""A pipeline to draw."""

from __future__ import annotations

import pytest

from headwater import Pipeline


@pytest.fixture
def shop() -> Pipeline:
    """One of each kind, and a source that nobody reads."""
    made = Pipeline("shop")
    made.source("clicks", "session STRING, at TIMESTAMP")
    made.source("orders", "id BIGINT", key="id")
    made.table("customers", "id BIGINT", key="id")
    made.source("unused", "n INT")

    @made.stream()
    def visits(clicks: object, orders: object) -> None:
        """Each visit & its <orders>."""

    @made.view(key="id,day")
    def per_day(visits: object, customers: object) -> None: ...

    @made.sink(object())
    def sent(visits: object, orders: object) -> None: ...

    return made
