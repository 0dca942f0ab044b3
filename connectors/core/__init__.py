"""What every connector is made of: the tool table, its derivations, and the doors to the outside."""
