"""Where it is kept: studies, trials, readings and environments in one SQL schema."""
