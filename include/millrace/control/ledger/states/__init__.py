"""The state of each table, and the parts of it that follow from the ledger and the log (ADR 25).

The history itself is in the folder above, and `Verdicts`, the part about gates, in `millrace.control.gates`.
"""
