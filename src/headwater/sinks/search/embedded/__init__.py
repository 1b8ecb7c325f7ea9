"""The embedded index: one SQLite file with full-text search, in a directory of its own."""
