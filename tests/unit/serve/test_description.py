"""schemathesis calls a real server process by its description, and finds nothing that it does not say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.sinks.push.subscriptions import PushSubscriptions
from headwater_server import HeadwaterServer
from serve_kit import call, child_server, make_log, make_views, stored

EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES", "15")
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method,response_headers_conformance"
)

NAMES = """[parameters]
"path.topic" = "orders"
"path.view" = "stock"
"""
"""What is there, so that not everything that is tried is unknown."""
ENDLESS = "/v1/views/{view}/changes"
"""A stream, which schemathesis would wait for until its time is over; tests/integration/serve/push has it."""


NOTIFYING = """
from headwater import Pipeline, targets

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "id BIGINT, item STRING")


@shop.sink(targets.push("{item} is out", "mailto:ops@shop.example"))
def alerts(orders):
    return orders
"""


def checked(folder: Path, url: str, *which: str) -> subprocess.CompletedProcess[str]:
    """Let schemathesis call a server by its description."""
    program = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/v1/openapi.json", "--url", url]
    return subprocess.run(
        [*program, "--checks", CHECKS, "--max-examples", EXAMPLES,
         "--phases", "examples,coverage,fuzzing", "--seed", "7",
         "--suppress-health-check", "all", "--no-color", *which],
        capture_output=True, text=True, cwd=folder, timeout=200,
    )  # fmt: skip


@pytest.mark.slow
def test_the_server_does_what_its_description_says(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    (tmp_path / "schemathesis.toml").write_text(NAMES)
    with make_views(tmp_path), child_server(tmp_path) as (process, url):
        found = checked(tmp_path, url, "--exclude-path", ENDLESS)
        assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
        assert process.poll() is None and call(url, "GET", "/v1/health").status == 200
    with headwater.open(f"file:{tmp_path / 'data'}") as log:
        assert all(set(row) == {"id", "item", "price", "at"} for row in stored(log))


@pytest.mark.slow
def test_so_do_the_routes_of_a_pipeline_that_notifies(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.pipeline" = "shop"\n')
    (tmp_path / "shop.py").write_text(NOTIFYING)
    server = HeadwaterServer(tmp_path, "shop.py")
    server.start()
    try:
        found = checked(tmp_path, server.address.rstrip("/"), "--include-path-regex", "/push")
    finally:
        server.stop()
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]
    with PushSubscriptions(tmp_path / "data" / "pipelines" / "shop") as subscribed:
        assert subscribed.endpoints() == []
