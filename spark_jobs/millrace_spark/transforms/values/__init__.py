"""Functions that convert values of single columns, take them apart, and find those that no table gives back.

They are pure, like all transforms, and know no record, table or spec.
"""
