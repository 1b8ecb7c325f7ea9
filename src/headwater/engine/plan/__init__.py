"""A user's function becomes a plan: called over empty streams, looked at, checked against what is allowed.

Phases of a call, the plan of a node, the columns it uses, the definition by which an edit is noticed, and
the words of every refusal.
"""
