"""How other programs write a topic's records on a broker: a file for each format, bytes in, Arrow out.

Invariant: a value is kept exactly or refused, and a value that is refused is named; none is changed.
"""
