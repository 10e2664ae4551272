"""The first spec of a bronze table, from the files that a source has delivered.

It is run by a person, never by a job.
"""
