"""The files of a pipeline's home: what its parts write down to find it again. No pyspark.

Checkpoints, the progress of each node, the runner's lease, versions, and where views are.

Everything here survives a power loss: a file is whole and synced before anything relies on it.
"""
