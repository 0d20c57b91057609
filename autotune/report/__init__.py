"""What it means: tables, figures and words for people."""
