"""The write use-cases of the gate."""
