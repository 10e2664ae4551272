"""Spark SQL as text, read without Spark; sqlglot takes half a second to load, so import these modules when needed."""
