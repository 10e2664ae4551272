"""Refused rows: which ones there are, and what became of each.

Fixing and replaying them is the work of `spark_jobs.layers.quarantine`.
"""
