"""Which code: sources frozen by content, and the repository around them."""
