"""Opens the way in that a URL names.

Invariant: what cannot be meant is refused before anything is received or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headwater import durations
from headwater import topic as topics
from headwater.ingest.address import IngestAddress, parse_address
from headwater.ingest.checkpoints import checkpoint_status
from headwater.ingest.ingest import Ingest
from headwater.ingest.lines import syslog
from headwater.ingest.lines.decoding import json_decoder, text_decoder
from headwater.ingest.lines.file import FileLines
from headwater.ingest.lines.line_writer import LineDestination, OnBadLine
from headwater.ingest.lines.tcp import SocketLines
from headwater.ingest.queue_messages import QueueMessages
from headwater.ingest.statsd.receiver import StatsdIngest
from headwater.ingest.status import IngestStatus
from headwater.ingest.topic_declaration import declare_topic
from headwater.ingest.webhook.settings import WebhookSettings
from headwater.log import Log


@dataclass(frozen=True)
class IngestSettings:
    """What can be chosen for a way in, beside its URL and topic."""

    flush: str | timedelta = "10 seconds"
    """Of StatsD: the interval over which samples are aggregated."""
    raw: bool = False
    """Of StatsD: whether each sample is kept as it is."""
    text: str | None = None
    """Of lines: the column that takes each as text; JSON, into all columns, if None."""
    follow: bool = False
    """Of a file: whether to go on as it grows and is rotated."""
    on_error: OnBadLine | None = None
    """Of lines: whether one that does not fit ends the work, as the first of a file does if None, or goes to
    the topic ``NAME.dead``, as those of sockets do, where one client is not to end it for the others."""


def open(
    url: str, topic: str, *, log: Log, name: str | None = None, settings: IngestSettings | None = None
) -> Ingest:
    """Open a way into a topic; ``run`` or ``BackgroundIngest`` lets it work.

    - ``url``: ``"statsd://127.0.0.1:8125"``, ``"tcp://…"``, ``"syslog://…"``, ``"file:./app.log"`` or
      ``"queue:emails?group=mailers"``.
    - ``topic``: where its records go; one that StatsD, syslog or a queue needs is made if it is not there.
    - ``log``: the open log.
    - ``name=None``: under which it notes how it is doing, and goes on after a restart; the topic's if None.
    - ``settings=None``: ``IngestSettings``, what its kind can be told.

    >>> import headwater
    >>> with headwater.open("memory:") as log, open("statsd://127.0.0.1:0", "metrics", log=log) as statsd:
    ...     print(log.topic("metrics").event_time)
    at
    """
    address, chosen = parse_address(url), settings or IngestSettings()
    topics.check_name("ingest", name or topic)
    return _opened(address, topic, log, name or topic, chosen)


def open_webhook(name: str, topic: str, *, log: Log, settings: WebhookSettings) -> Ingest:
    """Open a webhook with a server of its own, at ``/NAME``; ``run`` or ``BackgroundIngest`` lets it work.

    - ``name``: its name, and its path.
    - ``topic``: where events go. One that is not there is made, for whole events; into the columns of any
      other go the members of an event that have their names.
    - ``log``: the open log.
    - ``settings``: ``WebhookSettings``: where the secret is, who signs, where it listens.
    """
    from headwater.ingest.webhook.listener import WebhookIngest  # the server is for those who open one

    topics.check_name("ingest", name)
    return WebhookIngest(log, name, topic, settings)


def status(log: Log, name: str) -> IngestStatus:
    """Return how a way in is doing, in whatever process it runs, by what it has noted in the log.

    - ``log``: the open log.
    - ``name``: of the way in.
    """
    return checkpoint_status(log, name)


def _opened(address: IngestAddress, topic: str, log: Log, name: str, settings: IngestSettings) -> Ingest:
    if address.scheme == "statsd" and address.endpoint is not None:
        flush = None if settings.raw else durations.interval(settings.flush)
        return StatsdIngest(log, name, topic, address.endpoint, flush)
    if address.scheme == "syslog" and address.endpoint is not None:
        declare_topic(log, topic, syslog.COLUMNS, event_time="at")
        to = LineDestination(log, name, topic, syslog.decode_messages, settings.on_error or "dead_letter")
        return SocketLines(to, address.endpoint, syslog.PROTOCOL)
    if address.queue is not None:
        return QueueMessages(log, name, topic, address.queue)
    declared = log.topic(topic)
    decode = json_decoder(declared) if settings.text is None else text_decoder(declared, settings.text)
    if address.path is not None:
        to = LineDestination(log, name, topic, decode, settings.on_error or "stop")
        return FileLines(to, address.path, follow=settings.follow)
    assert address.endpoint is not None
    to = LineDestination(log, name, topic, decode, settings.on_error or "dead_letter")
    return SocketLines(to, address.endpoint)
