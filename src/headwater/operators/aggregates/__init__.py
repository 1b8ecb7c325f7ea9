"""What windows make of the rows in them: partial results that can be merged in any order."""
