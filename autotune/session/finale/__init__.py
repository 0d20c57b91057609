"""The defence of the winner: the finalists, the default and the baselines are measured again and judged."""
