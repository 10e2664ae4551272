"""The page of a run: what did this run do, and what is to be done next?"""
