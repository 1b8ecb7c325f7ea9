"""A server at work: it says why it cannot start, needs no Spark, and ends in good order."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater import ServeSettings, TokenStore
from headwater.errors import UsageError
from serve_kit import call, make_log, serving


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with serving(tmp_path) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(UsageError) as refused, serving(tmp_path, port=port):
            pass
    assert f"127.0.0.1:{port}" in refused.value.message and "--port" in str(refused.value.hint)


def test_the_garbage_collector_of_a_program_that_opens_a_server_is_left_alone(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    was = gc.get_freeze_count()
    with serving(tmp_path):
        assert gc.get_freeze_count() == was


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with pytest.raises(UsageError, match="token"), serving(tmp_path, host="0.0.0.0"):
        pass
    TokenStore.beside(f"file:{tmp_path / 'data'}").create("shop", ["read:*"])
    with serving(tmp_path, host="0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert call(url, "GET", "/v1/views").status == 401


def test_half_a_certificate_is_refused(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    for settings in (
        {"certificate": tmp_path / "c.pem"},
        {"certificate": tmp_path / "c", "key": tmp_path / "k"},
    ):
        with pytest.raises(UsageError), serving(tmp_path, **settings):
            pass


def test_no_spark_is_imported(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    code = (
        "import sys, headwater, urllib.request\n"
        "with headwater.open_server(log=sys.argv[1], settings=headwater.ServeSettings(port=0)) as server:\n"
        "    urllib.request.urlopen(server.url + '/v1/views').read()\n"
        "assert not {'pyspark', 'py4j'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, f"file:{tmp_path / 'data'}"], check=True, timeout=60)


def test_a_server_that_was_closed_answers_no_more(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    with serving(tmp_path) as server:
        assert call(server.url, "POST", "/v1/topics/orders", {"id": 1}).status == 200
    with pytest.raises(OSError):
        call(server.url, "GET", "/v1/health")
    assert ServeSettings().host == "127.0.0.1" and headwater.Server is type(server)
