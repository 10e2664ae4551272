"""The naive peer N: three PySpark scripts as one writes them on a first day. They import nothing of Millrace."""
