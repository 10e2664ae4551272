"""The tabs of a table's page: a module for each, which returns the values for the template of the same name.

What a tab reads, and what it means, belongs to `millrace.overview`; here it is only arranged for the template.
"""
