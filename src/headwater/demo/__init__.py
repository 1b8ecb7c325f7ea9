"""The log at work: a small play of real processes on one directory, for ``headwater demo``."""
