"""The parts of a table spec, each a frozen model.

`include.specs` checks what these models cannot.
"""
