"""What a gold batch computes again.

How groups are measured is worked out in `spark_jobs.transforms`.
"""
