"""A group of receivers on the loopback interface."""

from __future__ import annotations

import pytest

from headwater.ingest.address import HostPort
from headwater.ingest.feed.multicast import is_group, receiving_socket, sending_socket

LOOPBACK = "127.0.0.1"


def test_groups_are_told_from_hosts() -> None:
    assert is_group(HostPort("239.0.0.1", 5000))
    assert is_group(HostPort("ff02::1", 5000))
    assert not is_group(HostPort("127.0.0.1", 5000))
    assert not is_group(HostPort("localhost", 5000))


def test_every_receiver_of_a_group_gets_what_is_sent_to_it() -> None:
    group = HostPort("239.255.77.7", 45_077)
    try:
        receivers = [receiving_socket(group, LOOPBACK) for _ in range(2)]
        with sending_socket(group, LOOPBACK) as sender:
            sender.send(b"all of you")
    except OSError as error:
        pytest.skip(f"no multicast on the loopback interface: {error}")
    for each in receivers:
        each.setblocking(True)
        each.settimeout(5)
        assert each.recv(100) == b"all of you"
        each.close()
