"""Which configuration a workload takes: its own recipe, that of the nearest one, or the default."""
