"""The content of a single landing file by its format, before Spark reads it.

The parent folder decides which files belong to a run.
"""
