"""The HTTP API of outcomes, plans, rollbacks and what settles a step afterwards."""
