"""The parts of a table spec, each a frozen model.

`millrace.specs` checks what these models cannot.
"""
