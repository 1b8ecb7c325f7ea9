"""How captures are doing: what they measure of themselves, what is told of it, what Prometheus scrapes."""
