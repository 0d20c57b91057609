"""What is asked of the tables: one kind of row a file, in the caller's transaction."""
