"""The embedded log: a directory, as SQLite is a file. No server; many processes append and read."""

from headwater.log.embedded.log import EmbeddedLog
from headwater.log.embedded.memory import MemoryLog

__all__ = ["EmbeddedLog", "MemoryLog"]
