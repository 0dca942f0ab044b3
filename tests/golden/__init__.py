"""Pieces of the documents that are made from the code, between markers."""
