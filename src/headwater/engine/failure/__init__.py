"""Whose code failed, on which rows, and what becomes of those rows: the path of a row that is rejected.

Four words: a *late row* came behind the watermark; a *rejected* row or record is one on which code fails,
or that has no key; a *dead letter* is what is kept of it; *side topics* are where both are kept, one of
each per node.

- Before the operator: ``batch/failing_records.py`` looks for the records of a micro-batch on which code
  fails. Each is a ``RejectedRecord``: ``dead_letters.py`` keeps it by its place, and the node reads on
  without it.
- In a fold, after the operator, and where a key is null, a row has no one place.
  ``operators/tolerance.py``, ``batch/post_operator.py`` and ``batch/node_run.py`` make it a row with its
  reason (``operator.rejected``), and the micro-batch commits such rows to the same topic, with its
  number, before its results.
- Over DataFrames the search is ``failing_rows.py``: a plan runs again so that it reports rows
  (``guarded_plan.py``, ``guarded_code.py``), and where that does not tell, ``headwater.bisection`` does.
  ``failures.py`` has the words.
- Late rows are told apart by the operator's step and committed by the micro-batch to their own topic.
- ``home/side_topics.py`` notes both topics before a row goes there, and refuses to go on where they have
  lost rows.

Without ``on_error="dead_letter"`` nothing is set aside: the first rejected row is named, and the node
stops.
"""
