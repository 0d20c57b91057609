"""Who runs the loop: studies opened, trials asked for, executed, written down, and the winner defended."""
