"""A trained run as one file that needs nothing of this library."""
