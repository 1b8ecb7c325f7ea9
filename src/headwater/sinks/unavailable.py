"""The one error for a target that cannot be reached or used, whichever sink it belongs to."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class SinkUnavailable(HeadwaterError):
    """A sink's target cannot be reached or used: path, permission, disk, server."""
