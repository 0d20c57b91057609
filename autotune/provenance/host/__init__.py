"""Which machine: what the kernel and the drivers say of it, and how it stands now."""
