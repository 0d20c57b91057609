"""What did it cost: objectives, and the outcomes of their trials."""
