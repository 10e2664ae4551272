"""Gate results, certified versions, overrides, the restore after a refusal, and the check of row counts.

The rules themselves are evaluated in `millrace_spark.quality`.
"""
