"""Which database a URL means, and a capture of it into a log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from headwater.capture.capture import Capture
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.settings import DEFAULTS, CaptureSettings
from headwater.capture.source import CaptureSource
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import UsageError
from headwater.log.open import open as open_log


def open_source(url: str, name: str) -> CaptureSource:
    """Open a database for the capture of a name; nothing is changed in it."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() in ("postgresql", "postgres"):
        return _postgres(url, name)
    if scheme.lower() == "sqlite" and rest:
        from headwater.capture.sqlite.source import SqliteSource

        return SqliteSource(rest.removeprefix("//"), name)
    if scheme.lower() in ("mysql", "mariadb"):
        return _mysql(url, name)
    raise UsageError(
        # What has no scheme is not shown: it may be settings with a password.
        f'no database "{scheme}:" can be captured'
        if rest and scheme.isalnum()
        else "this is no URL of a database",
        hint='use "postgresql://user@host/database", "mysql://user@host/database" or "sqlite:./app.db"',
    )


def _postgres(url: str, name: str) -> CaptureSource:
    try:
        import psycopg  # noqa: F401  # which may be there, and lack its library
    except ImportError:
        raise UsageError(
            "PostgreSQL support is not installed", hint="run `pip install 'headwater[postgres]'`"
        ) from None
    from headwater.capture.postgres.address import parse
    from headwater.capture.postgres.source import PostgresSource

    address = parse(url)
    return PostgresSource(address.url, name, slot=address.slot, publication=address.publication)


def _mysql(url: str, name: str) -> CaptureSource:
    try:
        from headwater.capture.mysql.source import MySqlSource
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("pymysql", "pymysqlreplication"):
            raise
        raise UsageError(
            "MySQL support is not installed", hint="run `pip install 'headwater[mysql]'`"
        ) from None
    return MySqlSource(url, name)


def open_capture(
    url: str,
    log: str,
    name: str,
    tables: Sequence[CapturedTable | CapturedOutbox],
    settings: CaptureSettings = DEFAULTS,
) -> Capture:
    """Open a capture where it ended, with the database and the log, which it closes at its end."""
    with ExitStack() as opened:
        opened_log = opened.enter_context(open_log(log))
        source = opened.enter_context(open_source(url, name))
        capture = Capture(source, opened_log, name, tables, settings)
        capture.owns(opened.pop_all())
    return capture
