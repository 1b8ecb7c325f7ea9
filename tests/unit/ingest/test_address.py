"""URLs of ways in, and sockets for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import SourceRefused, UsageError
from headwater.ingest.address import HostPort, bound_host_port, parse_address, parse_host_port, tcp_socket


def test_a_url_without_a_host_listens_on_this_machine_alone() -> None:
    assert parse_address("statsd:").endpoint == HostPort("127.0.0.1", 8125)
    assert parse_address("tcp://:9000").endpoint == HostPort("127.0.0.1", 9000)
    assert parse_address("syslog://[::1]:514").endpoint == HostPort("::1", 514)


def test_a_file_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(parse_address("file:./app.log")) == f"file:{tmp_path / 'app.log'}"


@pytest.mark.parametrize(
    "url", ["", "statsd", "http://x", "tcp://127.0.0.1", "tcp://h:99999", "file:", "tcp://h:x"]
)
def test_what_is_no_way_in_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        parse_address(url)


def test_a_scheme_that_is_nearly_one_is_named() -> None:
    with pytest.raises(UsageError, match='did you mean "statsd"'):
        parse_address("stats://127.0.0.1:1")


def test_a_port_that_another_socket_has_is_refused() -> None:
    with (
        tcp_socket(parse_host_port("127.0.0.1:0")) as opened,
        pytest.raises(SourceRefused, match="cannot listen"),
    ):
        tcp_socket(bound_host_port(opened))
