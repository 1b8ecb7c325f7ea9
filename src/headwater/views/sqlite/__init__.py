"""Views in one SQLite file, the store that every pipeline has: its catalog, tables, sink and reading."""
