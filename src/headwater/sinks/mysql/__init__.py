"""A table in MySQL or MariaDB: the rows of a node by key, for anyone who selects from it."""
