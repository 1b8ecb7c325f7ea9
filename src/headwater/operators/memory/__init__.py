"""What operators remember: containers of rows, numbers and partial results, and how they become chunks.

Rows by number, by key, by key and time, in the order of time; codecs of chunks; merges. Nothing here knows
which operator it is for.
"""
