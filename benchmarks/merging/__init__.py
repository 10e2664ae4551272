"""Orders and what happens to them, for the series that measure MERGE."""
