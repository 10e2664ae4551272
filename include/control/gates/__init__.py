"""Gate results, certified versions, overrides, the restore of a refused version, and whether row counts add up.

The rules themselves are judged in `spark_jobs.quality`.
"""
