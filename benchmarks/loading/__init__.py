"""Loads of large files: the data, and the plain ways to load them."""
