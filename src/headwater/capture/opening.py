"""Which database a URL means."""

from __future__ import annotations

from headwater.capture.source import CaptureSource
from headwater.errors import UsageError


def open_source(url: str, name: str) -> CaptureSource:
    """Open a database for the capture of a name; nothing is changed in it."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() in ("postgresql", "postgres"):
        from headwater.capture.postgres.source import PostgresSource

        return PostgresSource(url, name)
    if scheme.lower() == "sqlite" and rest:
        from headwater.capture.sqlite.source import SqliteSource

        return SqliteSource(rest.removeprefix("//"), name)
    raise UsageError(
        f'no database "{scheme}:" can be captured',
        hint='use "postgresql://user@host/database" or "sqlite:./app.db"',
    )
