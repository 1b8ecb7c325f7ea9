"""A server at work in a thread of its own.

Invariant: when it is made it listens, or an error has said why not; when it is closed, every request that
was taken has been answered, or its time is over.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from dataclasses import replace

import uvicorn

from headwater.closing import Closing
from headwater.connection_limits import HEADER_BYTES, LimitedConnection
from headwater.errors import HeadwaterError, UsageError
from headwater.serve.app import Application, create_app
from headwater.serve.http.served import Served
from headwater.serve.security.access import Access, is_loopback
from headwater.serve.security.certificate import check_certificate
from headwater.serve.security.tokens import TokenStore
from headwater.serve.settings import ServeSettings

GRACE_SECONDS = 3


class Server(Closing):
    """Serves a log and its views over HTTP until it is closed."""

    def __init__(self, served: Served, settings: ServeSettings | None = None):
        served = served if settings is None else replace(served, settings=settings)
        settings = served.settings
        access = access_for(settings, served.log.url)
        check_certificate(settings)
        self._served = served
        self._socket = listen(settings.host, settings.port)
        self._app = create_app(served, access)
        self._uvicorn = _Stoppable(_config(self._app, settings), self._app)
        self._app.state.ingest.recover()
        self._thread = threading.Thread(target=self._run, name="headwater-serve", daemon=True)
        self._thread.start()
        self._uvicorn.wait_until_started()

    @property
    def url(self) -> str:
        """Where it is reached."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._uvicorn.config.is_ssl else 'http'}://{shown}:{port}"

    def wait(self) -> None:
        """Wait until it is closed by somebody else, or has failed."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Answer what was asked, end all streams, and listen no more."""
        self._uvicorn.should_exit = True
        self._thread.join()
        self._app.state.ingest.close()
        self._served.close()

    def _run(self) -> None:
        self._uvicorn.run([self._socket])


class _Stoppable(uvicorn.Server):
    """A server that tells those who wait for its end, and needs no signals."""

    def __init__(self, config: uvicorn.Config, app: Application):
        super().__init__(config)
        self._app, self._begun = app, threading.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self._begun.set()  # also where it did not come as far as to start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping = asyncio.Event()
        try:
            await super().startup(sockets)
        finally:
            self._begun.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping.set()
        self._app.state.push.close()
        await super().shutdown(sockets)

    def wait_until_started(self) -> None:
        self._begun.wait()
        if not self.started:
            raise HeadwaterError("the server could not start", hint="its log says why")


def access_for(settings: ServeSettings, url: str) -> Access:
    """Return what a server asks of those who call it; one that others can reach needs a token at least."""
    loopback = is_loopback(settings.host)
    if loopback and settings.tokens is None:
        return Access(None, loopback, settings.origins)
    tokens = TokenStore(settings.tokens) if settings.tokens else TokenStore.beside(url, settings.state)
    if not tokens.tokens():
        raise UsageError(
            f'a server on "{settings.host}" needs a token, and there is none',
            detail=f'tokens are read from "{tokens.path}"',
            hint="make one with `headwater token create NAME --scope read:*`",
        )
    return Access(tokens, loopback, settings.origins)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; who else does is told by the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(2048)
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot listen at {host}:{port}",
            detail=error.strerror or str(error),
            hint="stop what listens there, or choose another port with --port",
        ) from None
    return made


def _config(app: Application, settings: ServeSettings) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    protocol = type("Connection", (LimitedConnection,), {"request_seconds": settings.request_seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # nothing asks for a client's address
        limit_concurrency=settings.connections,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws_max_size=HEADER_BYTES,
        ssl_certfile=settings.certificate,
        ssl_keyfile=None if settings.key is None else str(settings.key),
    )
