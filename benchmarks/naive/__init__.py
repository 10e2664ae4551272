"""The naive peer N: three simple PySpark scripts that import nothing of Millrace."""
