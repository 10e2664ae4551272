"""`lakehouse plan` and `lakehouse run`: what a run would do, its driver, and the reports it leaves.

The plan of a single table is made in `include.control.planning`.
"""
