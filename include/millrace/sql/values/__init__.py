"""The values of expressions, as far as a text tells them: which two are the same, and which rise with a column.

Which rows of a source a query's value comes from is found in `millrace.sql.query`.
"""
