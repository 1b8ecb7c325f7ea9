"""A Delta Lake table: a node's rows by key, and what they were before, for any tool that reads Delta."""
