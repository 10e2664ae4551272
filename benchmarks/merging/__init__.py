"""Orders and their events, for the series that measure MERGE."""
