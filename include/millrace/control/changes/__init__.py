"""The differences between a table and its spec, and the folder in which a rebuild builds the table.

`millrace_spark.layers` decides which of the differences a run applies.
"""
