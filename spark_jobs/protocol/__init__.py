"""The commit protocol: batches, and the secondary writes that follow them.

It knows no layer; what a layer plans and writes lives in `spark_jobs.layers`.
"""
