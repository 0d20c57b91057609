"""Who runs the trials: workers on their cores, or this very process."""
