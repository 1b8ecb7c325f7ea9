"""Commands about queues: how they are doing, dead letters, and workers."""
