"""One search over several workloads: a study each, one budget."""
