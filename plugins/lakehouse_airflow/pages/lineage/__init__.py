"""The page Lineage: the tables from bronze to gold, and for a column where it comes from and what a change breaks.

What follows from the specs is found in `millrace.overview.lineage`; here it is only arranged.
"""
