"""The two forms of every listing: a table that fits the terminal, and JSON for other programs."""
