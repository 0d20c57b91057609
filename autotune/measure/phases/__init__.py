"""The phases of one configuration (prepare, load, check, warm up, read), and how it ends if one fails."""
