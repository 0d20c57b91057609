"""Where to look: configurations made, moved, drawn and listed."""
