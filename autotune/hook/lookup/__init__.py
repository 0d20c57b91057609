"""Which configuration a workload gets: its own recipe, that of the nearest workload, or the default."""
