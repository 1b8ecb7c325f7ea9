"""Notes: the small files of a pipeline's home, in which its parts write down what they must find again.

Invariant: a note is there whole or not at all, also after a power loss; so one that cannot be read was
damaged by something else, and is never taken for one that is not there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwater import durable
from headwater.errors import HeadwaterError


def write(path: Path, note: Any) -> None:
    """Write a note, in place of the one before."""
    durable.write(path, json.dumps(note, indent=1))


def read(path: Path) -> Any:
    """Return a note, None if there is none."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise damaged(path, str(error)) from None


def damaged(path: Path | str, reason: str) -> HeadwaterError:
    """Return the error for a file that a pipeline relies on and cannot use."""
    return HeadwaterError(
        f'file "{path}" of a pipeline is damaged',
        detail=reason,
        hint="restore the pipeline's home and its results from one copy, or let the node begin anew: "
        "a view by `headwater rebuild`, a stream or a sink under another name",
    )
