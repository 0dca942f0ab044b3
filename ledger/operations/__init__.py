"""The journal's write use-cases."""
