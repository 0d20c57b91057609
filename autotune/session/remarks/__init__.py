"""What outcomes show of a whole search, and is said once: cores, links or limits that it lacked."""
