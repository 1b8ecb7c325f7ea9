"""Mail: a row is a message to people, in plain text, and too many of them are one."""
