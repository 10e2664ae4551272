"""Repairs that a person decides: what a restore would change, shown before, and its execution as it was shown.

How a restore is committed, and what it rewinds, is in `millrace.control.repair`.
"""
