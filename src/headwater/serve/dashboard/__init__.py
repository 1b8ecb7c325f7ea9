"""The dashboard: static files, served as they are."""
