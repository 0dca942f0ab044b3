"""The rules of undoing, as values: no framework, no clock, no network."""
