"""PostgreSQL tables as sinks and as views; needs the package ``psycopg``."""

from headwater.errors import UsageError

try:
    from headwater.views.postgres.sink import PostgresSink
    from headwater.views.postgres.store import PostgresStore
except ImportError as error:
    if (error.name or "").split(".")[0] != "psycopg":
        raise
    raise UsageError(
        "PostgreSQL support is not installed", hint="run `pip install 'headwater[postgres]'`"
    ) from None

__all__ = ["PostgresSink", "PostgresStore"]
