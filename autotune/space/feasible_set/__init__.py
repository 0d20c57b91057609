"""The feasible set: counted, sampled and indexed without being listed."""
