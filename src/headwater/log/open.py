"""One URL names the log: a directory, memory, or a Kafka broker."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from headwater.errors import LogRefused, UsageError, nearest
from headwater.log.interface import Log


def open(url: str, **options: Any) -> Log:
    """Open the log that a URL names.

    - ``url``: the log, as below. ``file:./data`` is a directory, made when it is not there, and looked for
      where the program is now: a later ``os.chdir`` changes nothing. ``durability="fsync"`` (the default)
      acknowledges an append when it would survive a power loss; ``"os"`` leaves that to the operating
      system: faster, safe against ``kill -9``, not against a power loss. ``compression="lz4"`` is the
      default; ``"none"`` spares the processor and takes nearly twice the space, ``"zstd"`` the other way
      round. Each batch says how it was written, so one log may have all three. ``memory:`` is private to
      this object and gone when it is closed. ``kafka://host:port`` is a broker.
    - ``**options``: ``durability`` and ``compression`` of a log in a directory or in memory; of a broker
      librdkafka's own, as in ``open("kafka://broker:9093", **{"security.protocol": "SSL"})``.

    >>> with open("memory:") as log:
    ...     _ = log.create_topic("greetings", "text STRING")
    ...     with log.producer("greetings") as producer:
    ...         producer.send({"text": "hello"})
    ...     [row for batch in log.read("greetings") for row in batch.to_pylist()]
    [{'text': 'hello'}]
    """
    scheme, _, rest = url.partition(":") if isinstance(url, str) else ("", "", "")
    if scheme == "kafka":
        return _kafka(url, options)
    from headwater.log.embedded import EmbeddedLog, MemoryLog

    if scheme in ("file", "memory"):
        _check_options(options, EmbeddedLog)
    if scheme == "file" and rest:
        return EmbeddedLog(Path(rest.removeprefix("//")), **options)
    if scheme == "memory" and not rest:
        return MemoryLog(**options)
    raise UsageError(
        f'invalid log URL "{url}"',
        hint='use "file:./data" for a directory, "memory:", or "kafka://host:9092"',
    )


def absolute_url(url: str) -> str:
    """Return a log's URL as it means the same in every directory.

    >>> absolute_url("file:/srv/data"), absolute_url("kafka://broker:9092")
    ('file:/srv/data', 'kafka://broker:9092')
    """
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    return f"file:{Path(path).absolute()}" if scheme == "file" and path else url


def _check_options(options: dict[str, Any], log: type[Log]) -> None:
    known = [p.name for p in inspect.signature(log).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise UsageError(
                f'a log in a directory or in memory has no option "{option}"',
                hint=nearest(option, known) or "options: " + ", ".join(known),
            )


def _kafka(url: str, options: dict[str, Any]) -> Log:
    try:
        from headwater.log.kafka import KafkaLog
    except ImportError:
        raise LogRefused(
            "Kafka support is not installed", hint="run `pip install 'headwater[kafka]'`"
        ) from None
    return KafkaLog(url, options)
