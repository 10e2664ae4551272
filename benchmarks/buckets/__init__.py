"""The requests of a batch to a bucket: requests counted by a proxy before a real S3 server.

What it costs in CPU is measured by the other series.
"""
