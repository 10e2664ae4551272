"""Rules that refuse rows, and suites that check one exact version of a table.

The gate, in `millrace_spark.layers.gate`, decides what follows from a verdict.
"""
