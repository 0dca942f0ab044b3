"""Where calls come in, and the one way from a call to its tool."""
