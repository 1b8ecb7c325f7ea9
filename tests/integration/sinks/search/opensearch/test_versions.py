"""An index built anew beside the old one, on a real OpenSearch node."""

from __future__ import annotations

import urllib.request
import uuid
from collections.abc import Callable

import pytest

import follower_kit
import opensearch_server
import versions_kit
from follower_kit import Follower
from headwater import targets
from headwater.errors import SinkRefused


@pytest.mark.parametrize("check", versions_kit.CHECKS)
def test_an_index_is_built_anew(
    check: Callable[[Follower], None], opensearch: opensearch_server.Server
) -> None:
    follower = follower_kit.index_on_server(opensearch.url)
    check(follower)
    (index,) = follower.target.tables
    with urllib.request.urlopen(f"{opensearch.url}/_cat/indices/{index}*?h=index", timeout=60) as answer:
        assert len(answer.read().split()) == 1


def test_an_index_of_your_own_is_not_replaced(opensearch: opensearch_server.Server) -> None:
    index = f"own-{uuid.uuid4().hex[:8]}"
    urllib.request.urlopen(urllib.request.Request(f"{opensearch.url}/{index}", method="PUT"), timeout=60)
    url = f"opensearch://127.0.0.1:{opensearch.port}/{index}"
    versions = targets.search(url, "id", "name").versions
    assert versions is not None
    with versions.open(versions_kit.SCHEMA, 1) as sink:
        sink.begin()
    with pytest.raises(SinkRefused, match="cannot be built anew"):
        versions.prepare(2)
