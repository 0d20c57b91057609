"""Studies, trials and verdicts in sentences."""
