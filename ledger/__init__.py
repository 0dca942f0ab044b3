"""The write-ahead journal of runs: steps, events in hash chains, undo handles, the governance log."""
