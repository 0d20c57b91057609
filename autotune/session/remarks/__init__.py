"""Remarks on a whole search that outcomes give rise to, each made once: missing cores, links or limits."""
