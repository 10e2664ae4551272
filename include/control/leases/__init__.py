"""Leases: who may write a table now, and who waits for it.

How an object is put under a condition lives in `include.control.storage`.
"""
