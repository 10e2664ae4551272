"""Rules as Great Expectations reads them: bounds, row rules, and whether a rule fits its columns.

Table rules are worked out together in `spark_jobs.quality.fused`.
"""
