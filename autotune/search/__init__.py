"""What to try next: one strategy a file; ask and tell."""
