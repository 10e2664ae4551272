"""The page of a run: what did this run do, and what is to be done next?

What a run did to a table is found by `millrace.overview.runs`; here it is only arranged for the template.
"""
