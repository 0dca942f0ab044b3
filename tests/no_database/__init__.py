"""The database backend of a test that has not asked for a database."""
