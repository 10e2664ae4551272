"""Repairs of a table: batches that delete rows which a person names.

What a repair would change, and who decides it, is in `millrace.repair`; restores need no Spark.
"""
