"""MySQL and MariaDB: where a database is, connections that are made anew, and how values lie there."""
