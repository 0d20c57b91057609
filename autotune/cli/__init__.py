"""From the shell: one verb a file."""
