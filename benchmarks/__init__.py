"""What Millrace costs, measured against a plain script that does the same. See README.md."""
