"""One micro-batch of a query: its records, its nodes, their stages, up to the commit.

``query.py`` has Spark's streaming query, ``micro_batch.py`` what was read for all of its nodes,
``node_run.py`` the part of one node, ``failing_records.py`` the records on which its code fails.
A micro-batch is committed in ``NodeRun.process_and_commit`` (``node_run.py``), which hands the rows of its
node to the sink's ``commit``.
"""
