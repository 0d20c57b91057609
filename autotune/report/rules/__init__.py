"""Rules that choose configurations for workloads, learned from many workloads, and their regret."""
