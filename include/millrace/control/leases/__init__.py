"""Leases: the right to write a table, and the queue of the runs that wait for it.

Conditional puts are in `millrace.control.storage`.
"""
