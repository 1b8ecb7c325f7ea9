"""Workers of queues, killed at random moments."""
