"""When an endpoint gets less at once, and when it is given up."""

from __future__ import annotations

from headwater.backoff import Backoff
from headwater.sinks.delivery.endpoint_health import FAILURES, EndpointHealth


def health() -> EndpointHealth:
    return EndpointHealth(Backoff(1.0, 8.0, jitter=0.0), retry_timeout=60.0)


def test_failures_in_a_row_leave_one_attempt_at_a_time() -> None:
    endpoint = health()
    for _ in range(FAILURES - 1):
        endpoint.failed(100.0, None)
    assert endpoint.room(100.0, 8, 3) == 5
    endpoint.failed(100.0, None)
    assert endpoint.room(100.5, 8, 0) == 0
    assert (endpoint.room(101.0, 8, 0), endpoint.room(101.0, 8, 1)) == (1, 0)
    endpoint.delivered()
    assert endpoint.room(101.0, 8, 0) == 8


def test_it_is_dead_when_nothing_has_arrived_for_too_long() -> None:
    endpoint = health()
    endpoint.failed(100.0, None)
    endpoint.failed(159.0, None)
    assert not endpoint.is_dead(159.0)
    assert endpoint.is_dead(160.0)
    endpoint.delivered()
    assert not endpoint.is_dead(1e9)


def test_it_is_left_alone_for_as_long_as_it_asks() -> None:
    endpoint = health()
    endpoint.failed(100.0, 30.0)
    assert (endpoint.room(129.0, 8, 0), endpoint.room(130.0, 8, 0), endpoint.quiet_until) == (0, 8, 130.0)
    endpoint.reset()
    assert endpoint.room(101.0, 8, 0) == 8
