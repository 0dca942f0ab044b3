"""Rules over all manifests together; no framework."""
