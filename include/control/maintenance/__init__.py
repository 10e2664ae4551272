"""Which files to put together, which versions readers still need, which tombstones may go.

The work itself is done in `spark_jobs.layers.maintenance.maintenance`.
"""
