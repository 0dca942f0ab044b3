"""The rules of making a call; no framework."""
