"""What every view of the HTTP API stands on: authentication, input, problems, pages, repeated requests, the schema."""
