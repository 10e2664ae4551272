"""Tables of events, as Delta tables: their log, their data files, and how both stay small.

They know nothing of what the events say; that is in `include.control.ledger` and beside it.
"""
