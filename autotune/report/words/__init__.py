"""What a study, a trial or a verdict comes to, in sentences."""
