"""Routes about views: rows by key, by range, in pages."""
