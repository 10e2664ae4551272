"""What a silver batch reads, merges and deletes.

How rows become states and periods is worked out in `spark_jobs.transforms.silver.silver`.
"""
