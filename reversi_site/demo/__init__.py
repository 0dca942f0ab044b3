"""`reversi demo`: the main job done for real, once where everything can be undone and once where not."""
