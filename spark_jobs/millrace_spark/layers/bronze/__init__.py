"""What a bronze batch plans, writes and closes, from landing files and from Kafka.

The commit protocol is in `millrace_spark.protocol`.
"""
