"""Which way in a URL names."""

from __future__ import annotations

import pytest

import headwater
from headwater import ingest
from headwater.errors import HeadwaterError
from headwater.ingest import IngestSettings


@pytest.mark.parametrize(
    ("url", "name", "settings"),
    [
        ("ftp://x", None, IngestSettings()),
        ("statsd://127.0.0.1:0", "no/name", IngestSettings()),
        ("statsd://127.0.0.1:0", None, IngestSettings(flush="soon")),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    url: str, name: str | None, settings: IngestSettings
) -> None:
    with headwater.open("memory:") as log:
        with pytest.raises(HeadwaterError):
            ingest.open(url, "t", log=log, name=name, settings=settings)
        assert log.topics() == []
