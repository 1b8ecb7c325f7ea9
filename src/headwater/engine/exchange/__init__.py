"""How rows cross Spark, from the tasks that read them to the bucket of their key and back.

Routing by a hash of the key, blobs of many rows, Arrow tables as DataFrames, and what our code sets up in
each of Spark's Python workers.
"""
