"""Rules learned from many workloads, with what they cost."""
