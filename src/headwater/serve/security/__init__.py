"""Who may do what: tokens with scopes, and the limits that every request has to keep."""
