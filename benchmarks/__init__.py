"""The cost of Millrace, compared with a plain script that does the same. See README.md."""
