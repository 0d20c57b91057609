"""Repeating what was done: results are measured again and compared, proposals are derived from the record."""
