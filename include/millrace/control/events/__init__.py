"""Tables of events, as Delta tables: their log, their data files, and the compaction of both.

This folder does not depend on the content of events; `millrace.control.ledger` defines it.
"""
