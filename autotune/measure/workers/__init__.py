"""Processes that run an objective's code, can be killed at any moment, and are heard until then."""
