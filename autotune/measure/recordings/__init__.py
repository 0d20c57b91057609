"""What other tuners have measured, read and replayed."""
