"""Redis and Valkey: the rows of a node as keys that any client reads with ``GET``."""
