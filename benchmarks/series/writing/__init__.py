"""Series about several writers at once."""
