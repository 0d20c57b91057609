"""The cores of a machine: which measure, whose turn it is, how many threads share one, how fast it is."""
