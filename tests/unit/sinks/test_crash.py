"""Points of a commit do nothing unless a test has armed them."""

from __future__ import annotations

import signal
import subprocess
import sys

from headwater.sinks import crash


def test_points_that_nobody_watches_do_nothing() -> None:
    crash.point("anywhere")


def test_who_watches_is_called_at_every_point_until_the_end() -> None:
    seen: list[str] = []
    crash.watch(seen.append)
    crash.point("one")
    crash.watch(None)
    crash.point("two")
    assert seen == ["one"]


def test_an_armed_process_dies_at_the_point_that_was_counted() -> None:
    code = "from headwater.sinks import crash; crash.arm(2)\n"
    code += "for name in 'abc': crash.point(name); print(name, flush=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "a\n")
