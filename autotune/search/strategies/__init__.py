"""What proposes: one strategy a file, and what only one of them needs."""
