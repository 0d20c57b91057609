"""Stopping trials before they are complete: the rules, and what the session does with them."""
