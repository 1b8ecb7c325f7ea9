"""The log that the options of a data source name, for those who read it and those who append to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from headwater import topic as topics
from headwater.log import Log
from headwater.log.open import open as open_log


def opened(options: Mapping[str, str]) -> Log:
    """Return the log that options name; a topic of another program is read as they declare it."""
    own = json.loads(options.get("log", "{}"))
    _check_public(options["url"], own)
    log = open_log(options["url"], **own)
    if "declared" in options:
        log.read_as(topics.create(options["topic"], **json.loads(options["declared"])))
    return log


def _check_public(url: str, own: Mapping[str, object]) -> None:
    """Refuse secrets in an option of Spark's, which shows those in its plans."""
    if own and url.startswith("kafka:"):
        with suppress(ImportError):  # without the client, opening the log tells so
            from headwater.log.kafka.config import check_public

            check_public(own, "in an option of Spark's")
