"""What each layer plans, writes and closes within the commit protocol, a folder for each.

This folder has what they share; the protocol is in `millrace_spark.protocol`.
"""
