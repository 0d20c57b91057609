"""From the text of a space.yaml to what it says, or to all that is wrong with it."""
