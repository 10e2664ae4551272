"""The models that worker and driver share: intervals, places, table specs, job arguments and reports.

The models are frozen and validated at the edge. Nothing here reads or writes a table.
"""
