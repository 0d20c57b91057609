"""Where a result comes from, and what came of it."""
