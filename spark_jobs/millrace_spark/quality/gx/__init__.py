"""Great Expectations itself, and its Data Docs. Importing this costs seconds.

Nothing outside imports it before there is a rule that needs it.
"""
