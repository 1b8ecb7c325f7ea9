"""A server with a certificate, as a process: reached by all who believe its signer, and by nobody else."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

import serve_kit
from certificate_kit import WebCertificates, make_certificates
from headwater import AsyncClient, Client
from headwater.errors import LogRefused, LogUnavailable
from push_kit import EventReader, run_async
from serve_kit import EVENT, call, make_log, make_views
from server_process import stop

CHANGES = "/v1/views/stock/changes?snapshot=true"
KEY = ("a", "i/0")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> WebCertificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(root: Path, files: WebCertificates) -> Iterator[str]:
    make_log(root).close()
    with make_views(root), serving(root, files.certificate, files.key) as process:
        assert process.stderr is not None
        yield process.stderr.readline().decode().split()[-1]


@contextmanager
def serving(root: Path, certificate: Path, key: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``headwater serve`` with a certificate."""
    command = [sys.executable, "-m", "headwater", "serve", "--port", "0", "--log", f"file:{root / 'data'}"]
    tls = ["--certificate", str(certificate), "--key", str(key)]
    with subprocess.Popen([*command, *tls], stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            stop(process)


def believing(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_a_client_that_believes_the_signer_sends_reads_and_follows(url: str, files: WebCertificates) -> None:
    assert url.startswith("https://")
    with Client(url, ca_file=files.ca, retry_timeout=5) as client:
        sent = client.send("orders", [EVENT, EVENT])
        row = client.get("stock", KEY)
        changes = [each.kind for each in islice(client.follow("stock", snapshot=True), 12)]
        record = next(client.records("orders", since="earliest"))
    assert (sent.rows, record.value["item"]) == (2, "tea")
    assert row is not None and (row["shop"], row["item"]) == KEY
    assert changes == ["snapshot", *["row"] * 10, "ready"]


def test_so_does_the_async_client(url: str, files: WebCertificates) -> None:
    async def scenario() -> tuple[int, int, str]:
        async with AsyncClient(url, ca_file=files.ca, retry_timeout=5) as client:
            sent = await client.send("orders", EVENT)
            rows = [row async for row in client.scan("stock")]
            async for change in client.follow("stock", snapshot=True):
                return sent.rows, len(rows), change.kind
            raise AssertionError("it has ended")

    assert run_async(scenario()) == (1, 10, "snapshot")


def test_events_come_over_a_stream_and_a_websocket(url: str, files: WebCertificates) -> None:
    tls = believing(files.ca)
    with EventReader(port_of(url), CHANGES, tls=tls) as reader:
        streamed = [each.name for each in reader.until("ready")]
    with connect(url.replace("https:", "wss:") + CHANGES, ssl=tls) as socket:
        pushed = [json.loads(socket.recv(timeout=10))["event"] for _ in streamed]
    assert streamed == pushed == ["snapshot", *["row"] * 10, "ready"]


def test_a_server_that_a_stranger_has_signed_is_refused_at_once(url: str, files: WebCertificates) -> None:
    began = time.monotonic()
    for ca in (files.other_ca, None):
        with Client(url, ca_file=ca, retry_timeout=60) as client:
            for call_it in (lambda client=client: client.send("orders", EVENT), lambda c=client: follow(c)):
                with pytest.raises(LogRefused, match="certificate of the server is not trusted") as refused:
                    call_it()
                assert "ca_file=" in str(refused.value.hint)

    async def scenario() -> None:
        async with AsyncClient(url, ca_file=files.other_ca, retry_timeout=60) as client:
            async for _ in client.follow("stock"):
                return

    with pytest.raises(LogRefused, match="not trusted"):
        run_async(scenario())
    assert time.monotonic() - began < 30


def follow(client: Client) -> Any:
    return next(client.follow("stock"))


def test_a_name_that_is_not_in_the_certificate_is_refused(url: str, files: WebCertificates) -> None:
    client = Client(f"https://localhost:{port_of(url)}", ca_file=files.ca)
    with client, pytest.raises(LogRefused, match="not trusted") as refused:
        client.get("stock", KEY)
    assert "localhost" in str(refused.value.detail) and "a name" in str(refused.value.hint)


def test_plain_http_is_answered_by_nobody_and_harms_nobody(url: str, files: WebCertificates) -> None:
    plain = url.replace("https:", "http:")
    with pytest.raises((http.client.HTTPException, OSError)):
        call(plain, "GET", "/v1/health")
    with pytest.raises(LogUnavailable, match="cannot be reached"), Client(plain, retry_timeout=0.3) as client:
        client.get("stock", KEY)
    with Client(url, ca_file=files.ca) as client:
        assert client.get("stock", KEY) is not None


def test_tls_to_a_server_without_a_certificate_is_told(root: Path, files: WebCertificates, url: str) -> None:
    with serve_kit.serving(root) as server:
        client = Client(server.url.replace("http:", "https:"), ca_file=files.ca)
        with client, pytest.raises(LogRefused, match="does not speak TLS"):
            client.get("stock", KEY)


def test_a_key_of_another_certificate_ends_the_command_with_the_reason(
    root: Path, files: WebCertificates, url: str
) -> None:
    with serving(root, files.certificate, files.other_key) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert b"is not that of the certificate in" in said and b"Traceback" not in said
