"""The files of one partition: frames in segments, their index, the head, and who writes and reads them.

Everything that knows how bytes lie on disk is here; what a topic, a group or a retention is lies above.
"""
