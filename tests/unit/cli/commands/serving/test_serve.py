"""``headwater serve`` as a process of its own, ended by SIGTERM."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.conftest import Run

from serve_kit import call, make_log, make_views


def test_it_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    command = [
        sys.executable,
        "-m",
        "headwater",
        "serve",
        "--port",
        "0",
        "--log",
        f"file:{tmp_path / 'data'}",
    ]
    with make_views(tmp_path), subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        assert call(url, "POST", "/v1/topics/orders", {"id": 1}).json()["rows"] == 1
        assert call(url, "GET", "/v1/views/stock?limit=1").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
        assert process.stderr.read() == ""


def test_the_garbage_collector_leaves_out_what_was_there_before_the_first_request(tmp_path: Path) -> None:
    make_log(tmp_path).close()
    code = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count()))\n"
    code += "from headwater.cli import main\nmain()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--log", f"file:{tmp_path / 'data'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stderr.readline().startswith("serving at")
        process.send_signal(signal.SIGTERM)
        assert int(process.communicate(timeout=20)[0]) > 0


def test_a_log_that_is_not_there_and_one_beside_a_file_are_refused(run: Run, tmp_path: Path) -> None:
    assert "no log" in run("serve", "--log", f"file:{tmp_path / 'none'}").stderr
    assert "takes no --log" in run("serve", "shop.py", "--log", "file:data").stderr
