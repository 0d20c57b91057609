"""How many readings are enough, what they say, and who has won. Pure."""
