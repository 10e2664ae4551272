"""Loading large files: what is loaded, and the plain ways to load it."""
