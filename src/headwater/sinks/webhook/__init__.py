"""Webhooks: a row is a signed request to an endpoint of somebody else's, as Standard Webhooks has it."""
