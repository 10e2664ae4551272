"""The commands that write first specs from the files that a source has delivered."""
