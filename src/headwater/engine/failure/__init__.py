"""Whose code failed, on which rows, and the dead letters that those rows become.

A failed query is explained here, and a plan is run again so that it names the rows on which it fails.
"""
