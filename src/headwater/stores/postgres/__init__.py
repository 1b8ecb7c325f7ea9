"""PostgreSQL: connections that are made anew when they break, its column types, its errors.

Needs the package ``psycopg``.
"""
