"""Places in a topic, as people type them."""

from headwater.log.position import parse_start

__all__ = ["parse_start"]
