"""Objectives that are kernels, in C and CUDA C, over arrays and tensors: compiled, checked and timed."""
