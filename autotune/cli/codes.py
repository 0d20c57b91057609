"""Exit codes: how the command line says how it ended."""

DONE = 0
FAILED = 1
"""The store cannot be read or written, or the output not be written."""
BAD_INPUT = 2
NOTHING_SUCCEEDED = 3
"""Nothing feasible succeeded."""
DOES_NOT_HOLD = 4
"""What was recorded does not hold: a proposal does not follow from its record, a winner is not as good as it
was."""
INTERRUPTED = 130
