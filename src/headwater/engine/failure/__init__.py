"""Whose code failed, on which rows, and what becomes of those rows: the path of a row that is rejected.

Four words: a *late row* came behind the watermark; a *rejected row* is one on which code fails, or that has
no key; a *dead letter* is what is stored of it; *side topics* are where late rows and dead letters are
stored, one of each per node.

1. One search. Over DataFrames it is ``failing_rows.py``: a plan runs again so that it reports rows
   (``guarded_plan.py``, ``guarded_code.py``), and where that names none, ``headwater.bisection`` finds them.
   ``batch/failing_records.py`` asks it for records before the operator, ``batch/post_operator.py`` for
   results after it. Within an operator a fold is tried event by event (``operators/tolerance.py``), for it
   depends on the state that the events before have left.
2. One type, ``RejectedRow``. A record that the node has read has its offset; what an operator or the node's
   code has made has none.
3. One writer, ``DeadLetterWriter``: it alone writes to the dead-letter topic, each row once.
4. ``dead_letters.py`` reads the topic: what a node leaves out of its input, and what is redriven.

``failures.py`` has the words. Late rows are judged by the operator's step and committed by the micro-batch to
their own topic. ``home/side_topics.py`` notes both topics before a row goes there, and refuses to go on where
they have lost rows. Without ``on_error="dead_letter"`` nothing is set aside: the first rejected row is named,
and the node stops.
"""
