"""Databases and disks as stores: connections, column types, limits, and what their errors mean.

Shared by views and sinks (and by whatever else keeps rows in a database). No table of Headwater's is known
here: those belong to ``views/``.
"""
