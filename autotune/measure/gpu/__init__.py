"""What is particular to a GPU: events, graphs, clocks, limits and faults."""
