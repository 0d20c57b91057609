"""One configuration through its phases: prepared, loaded, checked, warmed up, read; or how it ended."""
