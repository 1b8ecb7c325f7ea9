"""Changes as records: the topics of captured tables, what is appended to them, and what does not fit."""
