"""Studies written for other tools to read."""
