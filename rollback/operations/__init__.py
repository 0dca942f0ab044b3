"""The write use-cases of rollbacks."""
