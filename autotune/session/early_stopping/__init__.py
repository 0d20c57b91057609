"""Trials that are stopped before they are complete: the rules, and the session's part."""
