"""Windows: which rows belong together by time, and when a result of them is published."""
