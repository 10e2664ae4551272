"""The Spark driver that a task starts, and the process around it.

The operators decide what the end of a job means for its task.
"""
