"""A webhook with a server of its own, for those who run no other: Starlette on uvicorn.

Invariant: when it has ended, every delivery that was answered with success is durable.
"""

from __future__ import annotations

import contextlib
import socket
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headwater import durations
from headwater.api.background import Background
from headwater.connection_limits import LimitedConnection
from headwater.errors import SourceUnavailable
from headwater.ingest.address import bound_host_port, parse_host_port, tcp_socket
from headwater.ingest.ingest import Ingest
from headwater.ingest.topic_declaration import declare_topic
from headwater.ingest.webhook.deliveries import EVENTS, Deliveries
from headwater.ingest.webhook.receiver import RefusedDelivery, WebhookReceiver
from headwater.ingest.webhook.route import problem, webhook_route
from headwater.ingest.webhook.secrets import read_secrets
from headwater.ingest.webhook.settings import WebhookSettings
from headwater.log import Log, Topic

POLL_SECONDS = 0.5
STOP_SECONDS = 5
CONNECTIONS = 1000


class WebhookIngest(Ingest):
    """Listens for the deliveries of one sender."""

    def __init__(self, log: Log, name: str, topic: str, settings: WebhookSettings):
        receiver = WebhookReceiver(settings.scheme, read_secrets(settings.secret), settings.window)
        path = f"/{name}"
        self._listener = tcp_socket(parse_host_port(settings.listen))
        super().__init__(log, name, f"http://{bound_host_port(self._listener)}{path}")
        self._deliveries = Deliveries(
            log, event_topic(log, topic), name, durations.interval(settings.remember)
        )
        route = webhook_route(path, receiver, self._deliveries, self.counts)
        app = Starlette(routes=[route], exception_handlers={HTTPException: _refused})  # type: ignore[dict-item]
        config = uvicorn.Config(
            app, http=LimitedConnection, log_config=None, access_log=False, lifespan="off",
            limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=STOP_SECONDS, server_header=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)

    def _run(self, stop: threading.Event) -> None:
        serving = Background(lambda: _serve(self._server, self._listener))
        while not (stop.wait(POLL_SECONDS) or serving.ended(0)):
            self.checkpoint()
        self._server.should_exit = True
        serving.result()
        if not stop.is_set():
            raise SourceUnavailable(f'the server of webhook "{self.name}" has ended')

    def close(self) -> None:
        """Stop listening and let go of the topics."""
        self._listener.close()
        self._deliveries.close()
        super().close()


def event_topic(log: Log, topic: str) -> Topic:
    """Return the topic of a webhook: one that is there, with whatever columns, or a new one for whole
    events."""
    if topic in {each.name for each in log.topics()}:
        return log.topic(topic)
    return declare_topic(log, topic, EVENTS, event_time="received")


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


async def _refused(_request: Request, error: HTTPException) -> Response:
    return problem(
        RefusedDelivery(error.status_code, error.detail.lower(), "a delivery is posted to its path")
    )
