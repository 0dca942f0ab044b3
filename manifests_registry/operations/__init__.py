"""The registry's write use-cases."""
