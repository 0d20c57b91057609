"""Kernels that are launched with the configuration tuned for their case."""
