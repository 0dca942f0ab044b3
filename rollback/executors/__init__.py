"""Who runs undos and reads: configured commands, connectors in this process, or several of them together."""
