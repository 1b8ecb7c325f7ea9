"""Whether a process is there: of those who have noted that they are at work, which still are.

Invariant: a process that is there is never taken for one that is gone. One of another machine cannot be
asked: there, only how long ago it was heard of tells.
"""

from __future__ import annotations

import os
import socket


def may_be_alive(host: str, pid: int) -> bool:
    """Tell whether a process may be there: it is, or is of another machine.

    >>> may_be_alive(socket.gethostname(), os.getpid()), may_be_alive("elsewhere", 1)
    (True, True)
    """
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
