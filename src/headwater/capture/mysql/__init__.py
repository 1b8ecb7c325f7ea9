"""MySQL, 8 or later, and MariaDB, 10.6 or later, captured from their binlog, as a replica reads it.

Events come one by one (``binlog.py``), are gathered into transactions and runs of rows (``gathering.py``),
and rows become Arrow column by column (``row_changes.py``, ``values.py``); snapshots are ordinary queries
beside it. How far a stream is, is a set of GTIDs (``gtids.py``, ``position.py``). Nothing is made in the
database. Needs the package ``mysql-replication``.
"""
