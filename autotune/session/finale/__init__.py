"""The winner defended: the finalists, the default and the baselines are read again, and judged."""
