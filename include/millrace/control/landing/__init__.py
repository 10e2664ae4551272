"""Landing files: which ones exist, which are new, and whether each can be loaded.

Spark reads their records.
"""
