"""Repeating what was done: results are measured again and compared, proposals derived again from the record."""
