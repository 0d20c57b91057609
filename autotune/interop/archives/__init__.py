"""A study as one file that can be checked, shared and read back."""
