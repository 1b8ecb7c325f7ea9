"""What a URL of ``headwater ingest`` means, and the sockets that it asks for.

Invariant: a host that is left out is 127.0.0.1; nothing listens elsewhere unless it is asked to.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import SourceRefused, UsageError, nearest

LOOPBACK = "127.0.0.1"
SCHEMES = ("statsd", "tcp", "syslog", "file", "queue")
PORTS = {"statsd": 8125, "syslog": 5514}
"""Where a way in listens if its URL names no port."""
RECEIVE_BUFFER = 64 << 20
"""Bytes of datagrams that the kernel is asked to keep for a reader that is busy."""
_FORCED_BUFFER = getattr(socket, "SO_RCVBUFFORCE", 33)
BACKLOG = 128


@dataclass(frozen=True)
class HostPort:
    """A host and a port.

    >>> str(HostPort("::1", 8125))
    '[::1]:8125'
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def family(self) -> socket.AddressFamily:
        """The family of its sockets."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


@dataclass(frozen=True)
class IngestAddress:
    """A way in: its kind, and where it listens or what it reads."""

    scheme: str
    endpoint: HostPort | None = None
    path: Path | None = None
    queue: tuple[str, str] | None = None
    """Topic and group of a queue."""

    def __str__(self) -> str:
        if self.queue is not None:
            return f"queue:{self.queue[0]}?group={self.queue[1]}"
        return f"file:{self.path}" if self.path is not None else f"{self.scheme}://{self.endpoint}"


def parse_address(url: str) -> IngestAddress:
    """Read ``statsd://HOST:PORT``, ``tcp://…``, ``syslog://…``, ``file:PATH`` or ``queue:TOPIC?group=GROUP``.

    >>> str(parse_address("statsd:")), str(parse_address("tcp://:9000"))
    ('statsd://127.0.0.1:8125', 'tcp://127.0.0.1:9000')
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in SCHEMES:
        hint = (
            nearest(scheme, SCHEMES) or 'use "statsd://127.0.0.1:8125", "tcp://…", "syslog://…", "file:PATH"'
        )
        raise UsageError(f'there is no way in named "{url}"', hint=hint)
    if scheme == "file":
        path = rest.removeprefix("//")
        if not path:
            raise UsageError(f'"{url}" names no file', hint='write it as "file:./app.log"')
        return IngestAddress(scheme, path=Path(path).absolute())
    if scheme == "queue":
        topic, _, group = rest.partition("?group=")
        if not topic or not group:
            raise UsageError(f'"{url}" names no queue', hint='write it as "queue:emails?group=mailers"')
        return IngestAddress(scheme, queue=(topic, group))
    return IngestAddress(scheme, parse_host_port(rest.removeprefix("//"), PORTS.get(scheme)))


def parse_host_port(text: str, default_port: int | None = None) -> HostPort:
    """Read ``HOST:PORT``, of which either may be left out where there is a default.

    >>> parse_host_port("[::1]:5000")
    HostPort(host='::1', port=5000)
    """
    host, _, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "")
    if not port and default_port is None:
        raise UsageError(f'"{text}" names no port', hint='write it as "127.0.0.1:5000"')
    if port and not (port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f'"{text}" names no port', hint="a port is a number from 0 to 65535")
    return HostPort(host.strip("[]") or LOOPBACK, int(port) if port else default_port or 0)


def udp_socket(endpoint: HostPort, *, shared: bool = False) -> socket.socket:
    """Return a socket that takes datagrams, with as large a buffer as the kernel allows.

    - ``shared``: whether others may have the same address, as the receivers of a group do.
    """
    opened = socket.socket(endpoint.family, socket.SOCK_DGRAM)
    if shared:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, RECEIVE_BUFFER)
    except OSError:  # only root may have more than net.core.rmem_max
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    return _bound(opened, endpoint)


def tcp_socket(endpoint: HostPort) -> socket.socket:
    """Return a socket that takes connections."""
    opened = socket.socket(endpoint.family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened = _bound(opened, endpoint)
    opened.listen(BACKLOG)
    return opened


def bound_host_port(opened: socket.socket) -> HostPort:
    """Return where a socket listens; port 0 has become a number."""
    host, port, *_ = opened.getsockname()
    return HostPort(host, port)


def _bound(opened: socket.socket, endpoint: HostPort) -> socket.socket:
    opened.setblocking(False)
    try:
        opened.bind((endpoint.host, endpoint.port))
    except OSError as error:
        opened.close()
        taken = error.errno == errno.EADDRINUSE
        raise SourceRefused(
            f'cannot listen on "{endpoint}"',
            detail=os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error),
            hint="another program listens there: end it, or choose another port" if taken else None,
        ) from None
    return opened
