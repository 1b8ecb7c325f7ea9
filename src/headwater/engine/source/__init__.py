"""The log as a Spark data source, to read and to append, in streams and in batches.

``offset_plan.py`` decides how far to read next, ``watermark.py`` what time it is then, both without Spark.
"""
