"""Rules that refuse rows, and suites that check one exact version of a table.

The gate, in `spark_jobs.layers.gate`, decides what follows from a verdict.
"""
