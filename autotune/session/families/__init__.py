"""One search over several workloads: a study for each, and one budget."""
