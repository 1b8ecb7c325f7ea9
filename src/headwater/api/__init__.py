"""What programs, the command line and servers call: one file per capability, reachable as ``headwater.NAME``.

Plain functions that take a pipeline, or the path of its file, and return frozen dataclasses, each with a
``to_dict`` for JSON. Nothing here prints. Importing it imports no pyspark: a function that needs Spark starts
it when it is called, after everything else has been found to be right.
"""
