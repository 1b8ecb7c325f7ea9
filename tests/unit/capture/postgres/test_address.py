"""Slots and publications that are given in a URL."""

from __future__ import annotations

import pytest

from headwater.capture.postgres.address import PostgresAddress, parse
from headwater.errors import UsageError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("postgresql://db/shop", PostgresAddress("postgresql://db/shop")),
        ("postgresql://db/shop?slot=mine", PostgresAddress("postgresql://db/shop", "mine")),
        (
            "postgresql://ada:p%40w@db/shop?publication=My%20Own&sslmode=require&slot=a_1",
            PostgresAddress("postgresql://ada:p%40w@db/shop?sslmode=require", "a_1", "My Own"),
        ),
        (
            "postgresql:///shop?host=%2Ftmp%2Fx&application_name=a+b",
            PostgresAddress("postgresql:///shop?host=%2Ftmp%2Fx&application_name=a+b"),
        ),
    ],
)
def test_what_is_ours_is_taken_off(url: str, address: PostgresAddress) -> None:
    assert parse(url) == address


@pytest.mark.parametrize(
    "query", ["slot=", "slot=My-Slot", "slot=a&slot=b", "publication=", f"slot={'a' * 64}"]
)
def test_a_name_that_cannot_be_is_refused_without_the_url(query: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(f"postgresql://ada:secret@db/shop?{query}")
    assert "secret" not in str(refused.value)
