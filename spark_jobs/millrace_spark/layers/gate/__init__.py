"""The gate: check one version, then certify it, refuse it, or restore the version before.

The rules live in `millrace_spark.quality`.
"""
