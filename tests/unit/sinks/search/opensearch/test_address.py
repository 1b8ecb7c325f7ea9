"""The URL of an index."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.sinks.search.opensearch.address import is_server, parse


def test_a_url_is_a_server_an_index_and_who_connects() -> None:
    place = parse("opensearch+https://shop:p%40ss@search.example/customers")
    assert (place.host, place.port, place.tls, place.index) == ("search.example", 9200, True, "customers")
    assert (place.user, place.password) == ("shop", "p@ss")
    assert "p@ss" not in repr(place)
    assert not parse("elasticsearch://search.example:9201/customers").tls


def test_a_directory_is_no_server() -> None:
    assert is_server("opensearch://host/index")
    assert not is_server("file:./index")
    assert not is_server("./index")


@pytest.mark.parametrize(
    "url",
    ["opensearch:///index", "opensearch://host", "opensearch://host/Index", "opensearch://host/a/b",
     "opensearch://u:secret@host:port/index", "redis://u:secret@host/index"],
)  # fmt: skip
def test_what_is_no_address_of_an_index_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(url)
    assert "secret" not in str(refused.value)
