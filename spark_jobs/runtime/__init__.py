"""What surrounds a job: its session, its arguments, its report.

It knows no table and no layer.
"""
