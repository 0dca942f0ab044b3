"""Django bases without business words; the one part of `reversi_site` that apps import."""
