"""Commands about the log: its topics, what is appended to them and read, groups, retention, ways in."""
