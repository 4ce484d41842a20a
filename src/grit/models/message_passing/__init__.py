"""Models that pass messages along edges, with and without more than edges."""
