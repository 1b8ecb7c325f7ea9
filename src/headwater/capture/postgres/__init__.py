"""PostgreSQL, 14 or later, captured by logical replication with ``pgoutput``, which every server has.

Bytes come in bulk (``replication.py``), are split into messages and transactions (``pgoutput.py``), messages
into cells (``tuples.py``), and cells become Arrow column by column (``columns.py``); snapshots go the same
way from ``COPY``. What the server must have and keeps for it is in ``slot.py`` and ``publication.py``. Needs
the package ``psycopg``.
"""
