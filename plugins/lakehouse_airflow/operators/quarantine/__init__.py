"""The form of the quarantine: read it, and carry out what needs no Spark."""
