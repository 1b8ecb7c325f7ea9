"""Datagrams in bulk, by one call of the system and by many."""

from __future__ import annotations

import socket

import pytest

from headwater.ingest.address import HostPort, bound_host_port, udp_socket
from headwater.ingest.datagrams import DatagramReader


@pytest.mark.parametrize("bulk", [True, False])
def test_every_datagram_is_handed_over_whole_and_in_order(bulk: bool) -> None:
    sent = [bytes([n % 251]) * (1 + n * 97 % 3000) for n in range(1500)] + [b"x" * 60_000, b""]
    opened = udp_socket(HostPort("127.0.0.1", 0))
    with (
        DatagramReader(opened, bulk=bulk) as reader,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        assert not reader.wait(0)
        assert reader.receive() == []
        received: list[bytes] = []
        for start in range(0, len(sent), 100):
            for each in sent[start : start + 100]:
                client.sendto(each, ("127.0.0.1", bound_host_port(opened).port))
            while reader.wait(0):
                received += map(bytes, reader.receive())
        assert received == sent
        assert reader.kernel_drops() in (0, None)
