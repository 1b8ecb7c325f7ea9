"""A process that has ended is gone; others may be there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from headwater.liveness import may_be_alive


def test_a_process_is_there_until_it_has_ended() -> None:
    assert may_be_alive(socket.gethostname(), os.getpid())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not may_be_alive(socket.gethostname(), gone.pid)
    assert may_be_alive("elsewhere", gone.pid), "nobody knows"
