"""The frame of a job: its session, its arguments, its report.

It contains nothing about tables or layers.
"""
