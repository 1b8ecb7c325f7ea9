"""The log that the options of a data source name, for those who read it and those who append to it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headwater.log import Log
from headwater.log.open import open as open_log


def opened(options: Mapping[str, str]) -> Log:
    """Return the log that options name."""
    return open_log(options["url"], **json.loads(options.get("log", "{}")))
