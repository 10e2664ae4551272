"""Delta logs read in plain Python: commits, batches, and the tables that are followed by them.

What Millrace writes beside a log lives in `include.control.ledger.ledger`.
"""
