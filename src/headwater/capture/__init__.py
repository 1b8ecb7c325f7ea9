"""Change data capture: what an application writes to its database becomes topics of the log.

What belongs here: the databases whose changes can be read in the order of their commits (a folder each, all
of them a ``CaptureSource``), and what is the same for all of them: snapshots beside the stream
(``snapshot.py``), the topics that changes are written to (``table_writer.py``), how far a capture has come
(``state.py``), and the loop that carries it all (``capture.py``). Followers of captured tables are sinks.
"""
