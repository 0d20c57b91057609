"""From what `objective:` names to an objective that can be run, and the files that it is made of."""
