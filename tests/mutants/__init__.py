"""Deliberate faults in the engine, and the command that proves the suite catches each: `python -m tests.mutants`."""
