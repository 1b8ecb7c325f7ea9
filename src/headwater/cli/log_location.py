"""Whether a URL names a log that this command line can open, and what may have been meant if not."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.errors import LogUnavailable, NotALog, UsageError

MARKER = "headwater.json"
_HOST = re.compile(r"[A-Za-z0-9.-]+:[0-9]+(,[A-Za-z0-9.-]+:[0-9]+)*")


def check(url: str, make: bool) -> None:
    """Refuse a URL of no log; ``make`` says that a directory need not be there yet."""
    scheme, _, rest = url.partition(":")
    if scheme == "file" and rest:
        _check_directory(Path(rest.removeprefix("//")), make)
    elif scheme == "memory":
        raise UsageError(
            "a log in memory would be gone when the command ends",
            hint="use file:DIRECTORY or kafka://HOST:PORT",
        )
    elif scheme != "kafka":
        raise UsageError(f'invalid log URL "{url}"', hint=_meant(url))


def _meant(url: str) -> str:
    if _HOST.fullmatch(url):
        return f'did you mean "kafka://{url}"?'
    if url and (":" not in url or url[0] in "./~"):
        return f'did you mean "file:{url}"?'
    return "use file:DIRECTORY or kafka://HOST:PORT"


def _check_directory(directory: Path, make: bool) -> None:
    if not directory.exists():
        if not make:
            raise LogUnavailable(
                f'no log at "{directory}"',
                hint="`headwater topic create` creates one; --log or HEADWATER_LOG names one elsewhere",
            )
    elif directory.is_dir() and not (directory / MARKER).exists():
        below = sorted(marker.parent for marker in directory.glob(f"*/{MARKER}"))
        if below:
            raise NotALog(f'directory "{directory}" is not a log', hint=f'did you mean "file:{below[0]}"?')
