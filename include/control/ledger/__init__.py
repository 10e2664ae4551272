"""The ledger: the append-only `ops` tables, and the current state of each table.

What follows from it for the next run is decided in `include.control.planning`.
"""
