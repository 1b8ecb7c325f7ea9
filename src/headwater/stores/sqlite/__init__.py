"""SQLite: connections to one file, one that writes and any number that read, and its column types."""
