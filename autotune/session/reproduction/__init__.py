"""What was done before, done again: measured, and held against what was said; derived from the record."""
