"""Live push: what changes in views and arrives in topics, to any number of clients at once.

One reader per view or topic reads each change once and hands it to the queues of all who follow
(``hub.py``); who begins further back catches up from the store until it meets the reader (``session.py``).
"""
