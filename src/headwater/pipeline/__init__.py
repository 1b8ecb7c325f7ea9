"""What a user declares, whether it fits together, and a file that becomes a pipeline.

Declarations never change and nothing here runs: sources, tables, streams, views, sinks and their targets,
the graph of who reads whom, and the names of tables that several nodes must not share.
"""
