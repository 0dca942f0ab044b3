"""Rules and values of the journal; no framework."""
