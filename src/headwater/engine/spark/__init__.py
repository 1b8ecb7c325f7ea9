"""Spark as pipelines need it: the session, its Java, the Python of its workers, and what they print."""
