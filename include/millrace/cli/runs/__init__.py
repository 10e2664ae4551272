"""`lakehouse plan` and `lakehouse run`: the plan of a run, its driver, and the reports that it writes.

`millrace.control.planning` plans a single table.
"""
