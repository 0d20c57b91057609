"""The lineage of results: what they come from, and what came of them."""
