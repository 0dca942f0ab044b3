"""One module per command: parse, one call, render, exit code."""
