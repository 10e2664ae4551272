"""Series about merges into silver."""
