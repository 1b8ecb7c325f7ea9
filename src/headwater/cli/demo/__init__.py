"""What ``headwater demo`` is made of: a generator of events, a screen, and the proof that views are right."""
