"""Whether bytes are text.

Invariant: text is UTF-8, whole; nothing is replaced or left out to make it so.
"""

from __future__ import annotations


def is_text(line: bytes) -> bool:
    """Tell whether bytes are UTF-8.

    >>> is_text(b"tea"), is_text(bytes([255]))
    (True, False)
    """
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
