"""What of the documentation is made by code: the tables and examples of the reference, and the site.

The pages themselves are written by hand, in `docs`.
"""
