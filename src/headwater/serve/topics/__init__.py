"""Routes about topics: events sent, records and figures read."""
