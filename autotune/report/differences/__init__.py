"""The differences between two trials, studies or recipes."""
