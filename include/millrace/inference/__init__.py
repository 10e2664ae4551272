"""Guess the first spec of a bronze table from the files that a source has delivered.

Only a person starts it, never a job.
"""
