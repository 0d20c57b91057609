"""Processes that run an objective's code: they can be killed at any moment without losing their readings."""
