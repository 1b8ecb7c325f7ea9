"""The states of a node's buckets, as they are stored and as workers keep them. No pyspark.

A state is a list of chunks; a chunk is a file that never changes and counts when a manifest names it. What
was decoded is cached from one micro-batch to the next.
"""
