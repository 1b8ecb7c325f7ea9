"""Stores that a node writes to, effectively once; the view store is one of them."""

from headwater.sinks.sink import Batch, Sink

__all__ = ["Batch", "Sink"]
