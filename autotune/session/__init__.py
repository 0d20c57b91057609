"""Who runs the loop: open studies, ask for trials, run them, write them down, and defend the winner."""
