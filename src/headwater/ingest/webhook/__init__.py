"""Webhooks in: signed deliveries by HTTP become events, each once.

Nothing is imported here: the server is needed by those alone who open one.
"""
