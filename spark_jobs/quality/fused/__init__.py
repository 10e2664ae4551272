"""Evaluate table rules together, in as few queries as possible.

`spark_jobs.quality.gx` evaluates the rules that only Great Expectations can.
"""
