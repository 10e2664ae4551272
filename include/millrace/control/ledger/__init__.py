"""The ledger: the append-only `ops` tables, and the current state of each table.

`millrace.control.planning` decides what the next run does with it.
"""
