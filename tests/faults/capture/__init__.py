"""Ways in, killed at random moments."""
