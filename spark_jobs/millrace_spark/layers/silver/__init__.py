"""What a silver batch reads, merges and deletes.

Rows become states and periods in `millrace_spark.transforms.silver`.
"""
