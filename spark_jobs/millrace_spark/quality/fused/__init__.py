"""Evaluate table rules together, in as few queries as possible.

`millrace_spark.quality.gx` evaluates the rules that only Great Expectations can.
"""
