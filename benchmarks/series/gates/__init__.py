"""Series about gates."""
