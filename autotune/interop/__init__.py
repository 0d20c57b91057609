"""From and to other tools: Kernel Tuner's recordings, the T4 exchange format."""
