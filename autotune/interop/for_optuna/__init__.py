"""The parts of the sampler for Optuna."""
