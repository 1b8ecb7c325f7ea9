"""What users hand to ``DataFrame.transform``: dedup, latest and scan, windows, joins, tables.

Each is a thin declaration: it has a user's arguments, checked, and makes its operator when it meets a
DataFrame, which is the engine's to run. The only rows that are computed with here are those of a ``sample``.
"""
