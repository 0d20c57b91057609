"""Who runs the trials: worker processes on their cores, or this very process."""
