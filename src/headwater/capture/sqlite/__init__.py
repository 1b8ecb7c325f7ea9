"""SQLite captured: triggers write into an outbox, in the application's own transactions.

What belongs here: what a file's tables are like (``catalog.py``), the triggers and the outbox that are made
for them, and reading the outbox as Arrow. Nothing of it needs the application's help, or its SQLite to be of
any version in particular: what triggers say is understood since 3.15.
"""
