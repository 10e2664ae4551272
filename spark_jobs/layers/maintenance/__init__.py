"""OPTIMIZE, VACUUM and the retention of tombstones, under a table's lease.

What is due is worked out in `include.control.maintenance`.
"""
