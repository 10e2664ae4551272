"""The parts of a table spec, each a frozen model.

What can be wrong with a spec beyond its shape is checked in `include.specs`.
"""
