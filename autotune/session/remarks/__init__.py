"""What is said of a search beside its numbers: limits that were met, cores that were missing, doubts."""
