"""What a worker and a driver tell each other: arguments in, a report out.

Nothing here reads or writes a table.
"""
