"""Table rules worked out together, in as few queries as possible.

Those that only Great Expectations can judge go to `spark_jobs.quality.gx`.
"""
