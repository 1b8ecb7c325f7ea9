"""Files of a state, never changed, on a disk or in an object store. No pyspark.

What is kept in a store is fetched once by each machine, into a bounded cache: names are never reused.
"""
