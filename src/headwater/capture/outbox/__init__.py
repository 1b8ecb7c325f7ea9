"""Outboxes: tables of events that an application writes with its own data, captured as events.

Each row that is inserted becomes a record, by the stream or by the snapshot at the beginning, never by both;
where that is asked for, rows are deleted when the log has them.
"""
