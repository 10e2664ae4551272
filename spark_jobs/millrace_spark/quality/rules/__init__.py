"""Rules with the meaning that Great Expectations gives them: bounds, row rules, and whether a rule fits its columns.

`millrace_spark.quality.fused` evaluates table rules together.
"""
