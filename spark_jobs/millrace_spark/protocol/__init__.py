"""The commit protocol: batches, and the secondary writes that follow them.

It does not know the layers: what a layer plans and writes is in `millrace_spark.layers`.
"""
