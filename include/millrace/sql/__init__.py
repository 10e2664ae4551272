"""Spark SQL as text, read without Spark.

sqlglot takes half a second to load, so these modules are imported when needed.
"""
