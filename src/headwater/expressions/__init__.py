"""Expressions over a record's columns, in the words of Spark SQL, computed on Arrow without Spark.

A source declares when an event happened, or what its key is, by such an expression where no column says so.
Here are the parser, the functions, and how text becomes a time. Which columns and metadata an expression may
name is decided by those who use it.
"""

from headwater.expressions.expression import Expression, parse, split

__all__ = ["Expression", "parse", "split"]
