"""The log as a Spark data source, to read and to append, in streams and in batches.

How far to read next and what time it is then (the watermark) is decided in ``offset_plan.py``, without Spark.
"""
