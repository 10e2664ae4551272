"""The two forms of every listing: a table that fits the terminal, and JSON for other programs.

Listings that belong to a command of their own are next to that command, a folder above.
"""
