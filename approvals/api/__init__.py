"""The HTTP API of runs, calls, approvals and halts."""
