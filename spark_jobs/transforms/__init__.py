"""Column -> Column and DataFrame -> DataFrame. No session, I/O, clock or config."""
