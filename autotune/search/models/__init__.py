"""What strategies learn from tries: surrogates, feasibility, cost, and what earlier studies know."""
