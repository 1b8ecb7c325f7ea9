"""Java's connections are accepted on any file descriptor."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from py4j import java_gateway
from py4j.java_gateway import CallbackServer, CallbackServerParameters

from headwater.engine.spark.callbacks import accept_on_any_descriptor


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as ``select`` can see, so that the next has a number beyond."""
    with ExitStack() as files:
        while files.enter_context(open(os.devnull)).fileno() < 1024:
            pass
        yield


@pytest.mark.usefixtures("many_files")
def test_java_is_heard_in_a_process_with_thousands_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_gateway, "select", java_gateway.select)
    accept_on_any_descriptor()
    listening, accepted = threading.Event(), threading.Event()
    java_gateway.server_started.connect(lambda *_, **__: listening.set())
    java_gateway.server_connection_started.connect(lambda *_, **__: accepted.set())
    settings = CallbackServerParameters(port=0, daemonize=True)
    server = CallbackServer({}, None, 0, callback_server_parameters=settings)
    server.start()
    try:
        assert server.server_socket.fileno() >= 1024
        assert listening.wait(30)
        with socket.create_connection(server.server_socket.getsockname()):
            assert accepted.wait(30)
    finally:
        server.shutdown()
