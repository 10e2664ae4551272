"""Rebuild a table in a separate folder, switch it, and undo the switch.

The ledger records the active rebuilds.
"""
