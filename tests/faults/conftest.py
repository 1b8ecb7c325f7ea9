"""What of this folder is no test."""

collect_ignore = ["followers/pipeline.py"]
"""A pipeline that ``headwater run`` loads; the environment of the test says where it is."""
