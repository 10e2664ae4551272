"""The messages between worker and driver: arguments in, a report out.

Nothing here reads or writes a table.
"""
