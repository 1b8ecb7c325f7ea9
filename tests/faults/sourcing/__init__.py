"""Commands under kill -9."""
