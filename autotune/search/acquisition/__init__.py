"""What a candidate is worth trying for."""
