"""Views in one SQLite file, the store that every pipeline has."""
