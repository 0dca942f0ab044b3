"""Small upstream servers, run as scripts: nothing of the library, so they start at once and say what they please."""
