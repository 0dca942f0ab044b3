"""The gate: whether a call may run now, and who must say so."""
