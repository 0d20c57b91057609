"""From your own code: kernels that take tuned configurations where they are launched."""
