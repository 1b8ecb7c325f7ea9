"""Targets that a node writes to, effectively once; each kind has a file or a folder of its name.

The contract is in ``sink.py``. Tables in databases are written by the sinks of ``views/``, which has their
catalogs.
"""

from headwater.sinks.sink import Batch, Contents, Sink

__all__ = ["Batch", "Contents", "Sink"]
