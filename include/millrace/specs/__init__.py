"""Read spec files and report all problems in them; `millrace.catalog` is the entry point.

Nothing here reads the tables of a lakehouse.
"""
