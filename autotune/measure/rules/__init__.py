"""How many readings are enough, what they say, and which configuration has won. Pure."""
