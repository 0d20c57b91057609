"""Which study a search belongs to: read, identified, found in the store, taught by earlier ones."""
