"""The composition root: settings, wiring, schedules and the command line."""
