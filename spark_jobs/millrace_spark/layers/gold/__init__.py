"""What a gold batch computes again.

The measures of groups are computed in `millrace_spark.transforms`.
"""
