"""Runs pipelines on Spark: a pipeline is put together, its queries run, are retried, and are merged.

The files here see the whole of a pipeline; each folder has one concern of it. ``state/``, ``home/`` and
``figures/`` need no pyspark.
"""
