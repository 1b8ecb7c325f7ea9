"""Sockets for feeds: to a group of receivers, or to one.

Invariant: nothing leaves the local network: multicast datagrams pass no router.
"""

from __future__ import annotations

import ipaddress
import socket

from headwater.ingest.address import HostPort, udp_socket

HOPS = 1


def is_group(endpoint: HostPort) -> bool:
    """Tell whether an address is that of a group, and not of one receiver."""
    try:
        return ipaddress.ip_address(endpoint.host).is_multicast
    except ValueError:
        return False


def sending_socket(endpoint: HostPort, interface: str | None) -> socket.socket:
    """Return a socket that sends to an address, by the interface of an address if one is named."""
    opened = socket.socket(endpoint.family, socket.SOCK_DGRAM)
    if is_group(endpoint) and endpoint.family == socket.AF_INET:
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOPS)
        if interface is not None:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
    elif is_group(endpoint):
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOPS)
    opened.connect((endpoint.host, endpoint.port))
    return opened


def receiving_socket(endpoint: HostPort, interface: str | None) -> socket.socket:
    """Return a socket that receives what is sent to an address, with others beside it if it is a group's."""
    group = is_group(endpoint)
    opened = udp_socket(endpoint, shared=group)
    if group and endpoint.family == socket.AF_INET:
        member = socket.inet_aton(endpoint.host) + socket.inet_aton(interface or "0.0.0.0")
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    elif group:
        member = socket.inet_pton(socket.AF_INET6, endpoint.host) + bytes(4)
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    return opened
