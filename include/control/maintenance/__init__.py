"""Decide what maintenance does: which files to compact, which old versions and tombstones to keep.

The work itself is done in `spark_jobs.layers.maintenance`.
"""
