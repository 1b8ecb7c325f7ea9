"""What every route shares: how it is declared and described, what is served, and how errors are told."""
