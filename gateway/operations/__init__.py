"""Making calls."""
