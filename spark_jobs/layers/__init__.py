"""What each layer plans, writes and closes within the commit protocol, a folder for each.

Here lies what they share; the protocol itself lives in `spark_jobs.protocol`.
"""
