"""Deliveries: messages to programs and people outside, which wait in an outbox until they have arrived.

A commit appends to the outbox, in one transaction with the batch's number; a worker sends what waits there.
Webhooks, mail and web push share both.
"""
