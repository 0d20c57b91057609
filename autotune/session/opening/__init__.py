"""Which study a search belongs to: the space file is read, the study identified, found in the store or begun,
and earlier studies are chosen to learn from."""
