"""Serving over HTTP: topics, views, live push, figures and operations, and the dashboard.

It reads the log, the view stores and what runners write down, and starts no Spark. ``http/`` has what every
route shares; ``security/`` who may do what; ``topics/``, ``views/``, ``push/`` and ``operations/`` have the
routes; ``dashboard/`` the page.
"""
