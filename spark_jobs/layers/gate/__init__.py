"""The gate: judge one version, then certify it, refuse it, or restore the one before.

The rules live in `spark_jobs.quality`.
"""
