"""Stateful operators: pure, Arrow in and Arrow out, one bucket of keys at a time, no pyspark.

What an operator is, is in ``operator.py``; what users call is in ``headwater.transforms``. State
lies in the containers of ``memory/``. A late row is judged by ``late_rows.split_late``, and in
``windows/`` and ``joins/`` by ``_is_late`` of the operator.
"""
