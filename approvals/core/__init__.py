"""The rules of the gate; no framework."""
