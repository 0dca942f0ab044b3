"""The console's pages, a module per thing they are about."""
