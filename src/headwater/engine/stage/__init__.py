"""One stateful operator over its buckets: a step of each, or everything at once.

The same step runs in Spark's workers and in the driver; ``runtime.py`` is for the former.
"""
