"""The Spark driver that a task starts, and the process around it.

What a job's ending means for the task is decided by the operators.
"""
