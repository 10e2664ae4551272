"""Landing files: which ones lie there, which are new, and whether each can be loaded.

Their records are read by Spark, not here.
"""
