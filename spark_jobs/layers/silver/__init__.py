"""What a silver batch reads, merges and deletes.

Rows become states and periods in `spark_jobs.transforms.silver`.
"""
