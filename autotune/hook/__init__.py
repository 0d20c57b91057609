"""From your own code: kernels launched with tuned configurations, runs of training scripts, recipes."""
