"""Values and rows: JSON and Python values become Arrow columns of a schema, and back.

Casts that change no value, checks that name the row and the column, keys as bytes and their hashes. What a
topic, a store or an operator does with the rows is not decided here; nothing here opens a file or a
connection.
"""
