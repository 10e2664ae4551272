"""OPTIMIZE, VACUUM and the retention of tombstones, under a table's lease.

The decision what to do is made in `millrace.control.maintenance`.
"""
