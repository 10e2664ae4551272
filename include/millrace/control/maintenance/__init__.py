"""Decide what maintenance does: which files to compact, which old versions and tombstones to keep.

The work itself is done in `millrace_spark.layers.maintenance`.
"""
