"""Lines for what has no client: by TCP, by syslog, or from a growing file."""
