"""Reports and live views: what they say, and how that is written."""
