"""One table in the list of all tables: its condition, and the facts by which a person judges it.

What needs a person because of them is found in `millrace.overview.attention`.
"""
