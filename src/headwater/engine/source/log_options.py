"""The log that the options of a data source name, for those who read it and those who append to it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headwater import topic as topics
from headwater.log import Log
from headwater.log.open import open as open_log


def opened(options: Mapping[str, str]) -> Log:
    """Return the log that options name; a topic of another program is read as they declare it."""
    log = open_log(options["url"], **json.loads(options.get("log", "{}")))
    if "declared" in options:
        log.read_as(topics.create(options["topic"], **json.loads(options["declared"])))
    return log
