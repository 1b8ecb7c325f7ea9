"""From a URL, options and a properties file to librdkafka's configuration.

Options are librdkafka's own and pass through, except those that the log's promises rest on. A value may say
where it is found, ``${env:NAME}`` or ``${file:PATH}``.
Invariant: a secret is in no URL, neither in one that is given nor in one that leaves this module, and in no
error and no repr.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from confluent_kafka import libversion

from headwater.errors import UsageError
from headwater.names import parts

FILE_VARIABLE = "HEADWATER_KAFKA_CONFIG"
"""Names a properties file with more options, so that secrets need not be in a URL."""

MESSAGE_BYTES = 8 << 20
"""Largest record on Kafka: as JSON it is longer than as Arrow, which ``record.MAX_BYTES`` limits."""

MESSAGE_MS = 30_000
"""How long a client tries to send a record."""

_RESERVED = (
    "acks", "auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store",
    "enable.idempotence", "enable.partition.eof", "group.id", "isolation.level", "metadata.broker.list",
    "partition.assignment.strategy", "request.required.acks", "transactional.id",
)  # fmt: skip
_SECRET = re.compile(
    r"password|passphrase|secret|jaas|\.key\.pem|oauthbearer\.config|token(?!\.endpoint)|user\.info",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")
"""A user's password in the URL of something else."""
_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
SCHEMA_REGISTRY = "schema.registry."
"""What the names of a schema registry's options begin with."""

_REBOOTSTRAPS = 0x020B0000
_COMMON: dict[str, Any] = {
    "client.id": "headwater",
    "socket.timeout.ms": 10_000,
    "log_level": 3,
    "reconnect.backoff.max.ms": 1_000,  # by itself it waits up to ten seconds after some cuts
    "allow.auto.create.topics": False,
    "topic.metadata.refresh.interval.ms": 60_000,
}
if libversion()[1] >= _REBOOTSTRAPS:
    # When all connections are cut at once, it would begin anew with other handles of the same brokers, and
    # a transaction that waits for one of the old handles would wait for ever.
    _COMMON["metadata.recovery.strategy"] = "none"
_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 5,
    "message.max.bytes": MESSAGE_BYTES,
    "message.timeout.ms": MESSAGE_MS,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 262_144,
}
_CONSUMER: dict[str, Any] = {
    "auto.offset.reset": "error",
    "check.crcs": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.message.max.bytes": 1 << 20,  # in larger pieces another partition is heard of later
    "fetch.queue.backoff.ms": 5,  # by itself it waits a second whenever its queue is full
    "fetch.wait.max.ms": 100,
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 65_536,
    "queued.min.messages": 200_000,
    "receive.message.max.bytes": 200_000_000,
}

_SHARE_CONSUMER: dict[str, Any] = {
    "fetch.wait.max.ms": 200,  # what is given to a consumer that no longer waits is nobody's for a while
    "max.poll.records": 10,
    "share.acknowledgement.mode": "explicit",
}

_log = logging.getLogger("headwater.kafka")
_log.addHandler(logging.NullHandler())  # librdkafka's lines go where the application sends them


class Config:
    """How to reach a cluster; makes the configuration of each kind of client."""

    def __init__(self, url: str, options: Mapping[str, Any]):
        servers, query = _split(url)
        self.servers = servers
        self.url = f"kafka://{servers}"
        check_public(query, "in a URL")
        given = _from_file() | query | {str(name): value for name, value in options.items()}
        self._options = {name: _found(name, value) for name, value in given.items()}
        self.schema_registry = {
            name.removeprefix(SCHEMA_REGISTRY): value
            for name, value in self._options.items()
            if name.startswith(SCHEMA_REGISTRY)
        }
        """Options of the schema registry's client, as it names them."""
        if "@" in str(self.schema_registry.get("url", "")):
            raise UsageError(
                "the URL of a schema registry takes no user and password",
                hint=f'set "{SCHEMA_REGISTRY}basic.auth.user.info" as an option, or in a file named by '
                f"{FILE_VARIABLE}",
            )
        for name in _RESERVED:
            if name in self._options:
                raise UsageError(
                    f'Kafka option "{name}" cannot be set',
                    detail="the log sets it, and its promises rest on it",
                )

    def __repr__(self) -> str:
        return f"Config({self.url!r})"

    @property
    def ca(self) -> str | None:
        """The file with the certificates that are trusted, if one is named."""
        return self._options.get("ssl.ca.location")

    @property
    def proof(self) -> str:
        """The options by which a client says who it is, as a person is told of them."""
        mechanism = self._options.get("sasl.mechanism", self._options.get("sasl.mechanisms"))
        bearer = mechanism == "OAUTHBEARER"
        return 'the options "sasl.oauthbearer…"' if bearer else '"sasl.username", "sasl.password"'

    def admin(self) -> dict[str, Any]:
        """Return the configuration of an admin client."""
        return self._with({})

    def producer(self, **more: Any) -> dict[str, Any]:
        """Return the configuration of an idempotent producer."""
        return self._with(_PRODUCER | more)

    def consumer(self, group: str, **more: Any) -> dict[str, Any]:
        """Return the configuration of a consumer that commits by hand and sees whole transactions."""
        return self._with(_CONSUMER | {"group.id": group} | more)

    def share_consumer(self, group: str) -> dict[str, Any]:
        """Return the configuration of a share consumer, whose messages are acknowledged one by one."""
        whole = self._with(_SHARE_CONSUMER | {"group.id": group})
        del whole["allow.auto.create.topics"]  # which they do not take, and do not do
        return whole

    def scrubbed(self, text: str) -> str:
        """Return a text without the values of secret options."""
        for name, value in self._options.items():
            for secret in _secrets(name, str(value)):
                text = text.replace(secret, "***")
        return text

    def _with(self, own: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in self._options.items() if not name.startswith(SCHEMA_REGISTRY)}
        return _COMMON | own | given | {"bootstrap.servers": self.servers, "logger": _log}


def _split(url: str) -> tuple[str, dict[str, Any]]:
    address, _, query = url.partition("?")
    servers = address.removeprefix("kafka:").removeprefix("//").rstrip("/")
    if "@" in servers:
        raise UsageError(
            "a Kafka URL takes no user and password",
            hint=f'set "sasl.username" and "sasl.password" as options, or in a file named by {FILE_VARIABLE}',
        )
    hosts = parts(servers)
    if not all(re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(:\d{1,5})?", host) for host in hosts):
        raise UsageError(
            f'invalid Kafka URL "kafka://{servers}"',
            hint='write "kafka://host:9092" or "kafka://one:9092,two:9092"',
        )
    return ",".join(map(_with_port, hosts)), {name: unquote(value) for name, value in parse_qsl(query)}


def is_secret(name: str) -> bool:
    """Tell whether the value of an option is nobody's business."""
    return _SECRET.search(name) is not None


def _secrets(name: str, value: str) -> list[str]:
    """Return what of an option's value is nobody's business."""
    found = [each[1] for each in _CREDENTIALS.finditer(value)]
    if is_secret(name):  # of "user:password" the second part alone is a secret as well
        found += [value, *value.split(":", 1)[1:]]
    return [each for each in found if each]


def check_public(options: Mapping[str, Any], where: str) -> None:
    """Refuse secrets among options that others see: ``ps``, Spark and its plans, files, messages."""
    for name, value in options.items():
        if _secrets(name, str(value)) and not _REFERENCE.fullmatch(str(value)):
            raise UsageError(
                f'Kafka option "{name}" is a secret, and does not belong {where}',
                detail="it would be shown there",
                hint=f"put it in a file named by {FILE_VARIABLE}, or write ${{env:NAME}} or ${{file:PATH}}",
            )


def _found(name: str, value: Any) -> Any:
    """Return the value of an option, from where it says that it is."""
    said = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if said is None:
        return value
    kind, where = said.groups()
    try:
        return os.environ[where] if kind == "env" else Path(where).read_text().strip()
    except (KeyError, OSError, UnicodeDecodeError) as error:
        what = f"environment variable {where}" if kind == "env" else f'file "{where}"'
        reason = "it is not set" if kind == "env" else str(error)
        raise UsageError(f'cannot read the {what}, which has Kafka option "{name}"', detail=reason) from None


def _with_port(host: str) -> str:
    return host if re.search(r":\d+$", host) and not host.endswith("]") else f"{host}:9092"


def _from_file() -> dict[str, Any]:
    name = os.environ.get(FILE_VARIABLE)
    if not name:
        return {}
    try:
        lines = Path(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = f'cannot read the file "{name}" that {FILE_VARIABLE} names'
        raise UsageError(what, detail=str(error)) from None
    pairs = [line.partition("=") for line in lines if line.strip() and line.strip()[0] not in "#!"]
    for number, (_, equals, _) in enumerate(pairs, start=1):
        if not equals:
            raise UsageError(f'setting {number} of the file "{name}" lacks "="', hint="write option=value")
    return {option.strip(): value.strip() for option, _, value in pairs}
