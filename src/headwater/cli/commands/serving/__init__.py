"""Commands about the server: to run it, and to say who may call it."""
