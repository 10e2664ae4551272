"""Rules that refuse rows, and suites that judge one exact version of a table.

What follows from a verdict is decided by the gate, in `spark_jobs.layers.gate`.
"""
