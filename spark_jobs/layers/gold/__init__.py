"""What a gold batch recomputes.

How groups are measured is worked out in `spark_jobs.transforms`.
"""
