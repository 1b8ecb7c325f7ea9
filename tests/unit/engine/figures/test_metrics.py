"""What Prometheus is told: the text form, and the address where it is."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from headwater.engine.figures.metrics import CONTENT_TYPE, METRICS, Endpoint, text
from headwater.engine.figures.status import Status
from headwater.errors import HeadwaterError
from headwater.sinks.delivery.figures import DeliveryStatus

STATUS = Status(
    node="totals",
    kind="view",
    state="running",
    batches=3,
    rows=1200,
    rate=10.5,
    out=7,
    late=2,
    dead=5,
    duplicates=4,
    seconds=0.25,
    lag=30,
    clock=1_767_323_045_500_000,
    state_bytes=4096,
    error=None,
    deliveries=DeliveryStatus(waiting=8, set_aside=6, delivered=90),
)
LINE = re.compile(r'([a-z_]+)\{pipeline="((?:[^"\\]|\\.)*)",node="((?:[^"\\]|\\.)*)"\} (\S+)')


def values(told: str) -> dict[str, float]:
    """Return the figures of the only node."""
    found = [LINE.fullmatch(line) for line in told.splitlines() if not line.startswith("#")]
    return {each[1]: float(each[4]) for each in found if each}


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_every_figure_of_a_node_is_told() -> None:
    assert values(text("shop", [STATUS])) == {
        "headwater_node_up": 1,
        "headwater_rows_total": 1200,
        "headwater_late_total": 2,
        "headwater_late_alert": 0,
        "headwater_ahead_producers": 0,
        "headwater_dead_records": 5,
        "headwater_deliveries_waiting": 8,
        "headwater_deliveries_set_aside": 6,
        "headwater_deliveries_total": 90,
        "headwater_duplicates_total": 4,
        "headwater_batches_total": 3,
        "headwater_lag_records": 30,
        "headwater_batch_seconds": 0.25,
        "headwater_clock_seconds": 1_767_323_045.5,
        "headwater_state_bytes": 4096,
        "headwater_memory_bytes": 0,
    }


def test_every_metric_has_its_help_and_type_before_its_values() -> None:
    lines = text("shop", [STATUS, replace(STATUS, node="newest")]).splitlines()
    for metric in METRICS:
        at = lines.index(f"# HELP {metric.name} {metric.help}")
        assert lines[at + 1] == f"# TYPE {metric.name} {metric.type}"
        assert [line.split("{")[0] for line in lines[at + 2 : at + 4]] == [metric.name] * 2
        assert metric.name.endswith("_total") == (metric.type == "counter")


def test_what_a_node_has_not_is_left_out() -> None:
    told = values(text("shop", [replace(STATUS, clock=None, batches=0, dead=None)]))
    assert "headwater_clock_seconds" not in told
    assert "headwater_batch_seconds" not in told
    assert "headwater_dead_records" not in told


@pytest.mark.parametrize("state", ["starting", "waiting", "broken"])
def test_a_node_that_does_not_run_is_not_up(state: str) -> None:
    assert values(text("shop", [replace(STATUS, state=state)]))["headwater_node_up"] == 0  # type: ignore[arg-type]


def test_labels_are_escaped() -> None:
    told = text('a"b\\c\nd', [STATUS])
    assert r'pipeline="a\"b\\c\nd",node="totals"' in told
    assert len(told.splitlines()) == 3 * len(METRICS)


def test_the_endpoint_answers_with_what_was_published_last() -> None:
    with Endpoint("shop", 0) as endpoint:
        assert get(endpoint.url)[2] == text("shop", [])
        endpoint.publish([STATUS])
        assert get(endpoint.url) == (200, CONTENT_TYPE, text("shop", [STATUS]))
        assert get(endpoint.url + "?name=x")[0] == 200


def test_elsewhere_there_is_nothing() -> None:
    with Endpoint("shop", 0) as endpoint:
        status, _, body = get(endpoint.url.replace("/metrics", "/"))
    assert (status, body) == (404, "metrics are at /metrics\n")


def test_a_request_for_the_head_alone_gets_no_figures() -> None:
    with Endpoint("shop", 0) as endpoint:
        request = urllib.request.Request(endpoint.url, method="HEAD")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert (answer.status, answer.read()) == (200, b"")


def test_only_this_machine_is_answered() -> None:
    with Endpoint("shop", 0) as endpoint:
        assert endpoint.url.startswith("http://127.0.0.1:")


def test_a_port_in_use_is_told() -> None:
    with Endpoint("shop", 0) as endpoint:
        port = int(endpoint.url.split(":")[2].split("/")[0])
        with pytest.raises(HeadwaterError, match=f"port {port} for metrics is in use"):
            Endpoint("shop", port)


def test_a_closed_endpoint_leaves_its_port_to_others() -> None:
    with Endpoint("shop", 0) as endpoint:
        port = int(endpoint.url.split(":")[2].split("/")[0])
    with Endpoint("shop", port) as again:
        assert get(again.url)[0] == 200
