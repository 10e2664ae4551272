"""The warm Spark Connect server: started, watched, asked whether it answers.

Its jars are resolved one folder up.
"""
